# What a run wrote is a trace: replayed under the same limits it is predicted exactly.
good simulate --num-gpu-blocks 5000 --max-num-seqs 16 --max-num-batched-tokens 1024 --out first
head -n1 first/requests.jsonl >meta
for limit in '"num_gpu_blocks": *5000' '"max_num_seqs": *16' '"max_num_batched_tokens": *1024'; do
    grep -Eq "$limit" meta || fail "no $limit in $(cat meta)"
done

# Limits come from the meta line (not the seed, which draws a model's noise) ...
good simulate --trace first/requests.jsonl --seed 1 --compare --out second
! grep -E '(TTFT|TPOT|ITL|E2E) .*[+-]' out | grep -v ' [+-]0\.0[0-9]%' || fail "errors above"
# ... unless a flag says otherwise.
good simulate --trace first/requests.jsonl --num-gpu-blocks 6000 --out third
head -n1 third/requests.jsonl | grep -Eq '"num_gpu_blocks": *6000'
head -n1 third/requests.jsonl | grep -Eq '"max_num_seqs": *16'

# So does how requests arrive.
good simulate --arrivals closed --concurrency 8 --out closed
good simulate --trace closed/requests.jsonl --seed 1 --compare --out again
grep -Eq '^TTFT +mean .* \+0\.00%' out || fail "closed loop: $(cat out)"
cmp closed/steps.jsonl again/steps.jsonl

# The compared metrics.
for metric in 'TTFT +mean' 'TPOT +p50' 'ITL +p90' 'E2E +p95' 'E2E +p99' throughput duration \
    'prefix hits'; do
    good simulate --trace first/requests.jsonl --compare
    grep -Eq "^$metric" out || fail "no $metric"
done

# Times by another clock are told apart.
for clock in tap client engine; do
    sed "1s/\"clock\": *\"engine\"/\"clock\":\"$clock\"/" first/requests.jsonl >by.jsonl
    vtwin simulate --trace by.jsonl --compare
    if [ $clock = engine ]; then
        [ ! -s err ] || fail "its own clock: $(cat err)"
    else
        grep -q "^vtwin: warning: by.jsonl: its times are by the $clock's clock" err ||
            fail "$clock: $(cat err)"
    fi
done
