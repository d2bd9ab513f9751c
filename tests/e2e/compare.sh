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

# A closed loop that does not say so was a benchmark of an engine that had computed little
# before: its first full steps hold the host, and first tokens come later.
burst='--arrivals closed --concurrency 64 --max-num-batched-tokens 2048'
good simulate $burst --out long
good simulate --trace long/requests.jsonl --seed 1 --compare
grep -Eq '^TTFT +mean .* \+0\.00%' out || fail "an engine that has served for long: $(cat out)"
for warmed in 8 16; do
    good simulate $burst --warmed-for $warmed --out fresh
    head -n1 fresh/requests.jsonl | grep -Eq "\"warmed_for\": *$warmed" || fail "not stated"
    good simulate --trace fresh/requests.jsonl --seed 1 --compare
    grep -Eq '^TTFT +mean .* \+0\.00%' out || fail "warmed for $warmed: $(cat out)"
done
sed '1s/"warmed_for": *[0-9]*,//' long/requests.jsonl >unstated.jsonl
good simulate --trace unstated.jsonl --seed 1 --compare
grep -Eq '^TTFT +mean .* \+[0-9.]*[1-9]' out || fail "a first burst as quick as others: $(cat out)"
good simulate --trace unstated.jsonl --seed 1 --compare --warmed-for 0
grep -Eq '^TTFT +mean .* \+0\.00%' out || fail "--warmed-for 0: $(cat out)"

# The compared metrics.
for metric in 'TTFT +mean' 'TPOT +p50' 'ITL +p90' 'E2E +p95' 'E2E +p99' throughput duration \
    'prefix hits'; do
    good simulate --trace first/requests.jsonl --compare
    grep -Eq "^$metric" out || fail "no $metric"
done

# What is compared is by the trace's clock; a flag for another one is told.
for clock in tap client engine; do
    sed "1s/\"clock\": *\"engine\"/\"clock\":\"$clock\"/" first/requests.jsonl >by.jsonl
    good simulate --trace by.jsonl --compare --frontend vllm-rs
    [ $clock = engine ] || grep -q "^clock  *the $clock's, frontend vllm-rs" out ||
        fail "$clock: $(head -5 out)"
    vtwin simulate --trace by.jsonl --compare --clock engine
    [ $clock = engine ] || grep -q "by the $clock's clock, those predicted by the engine's" err ||
        fail "$clock: $(cat err)"
done
# A run by a client's clock is a client's trace, and replays to itself.
good simulate --clock client --frontend vllm-rs --arrivals closed --concurrency 8 --out seen
head -n1 seen/requests.jsonl | grep -q '"clock": *"client"' || fail "no clock"
grep -q '"frontend": *"vllm-rs"' seen/summary.json || fail "no frontend"
good simulate --trace seen/requests.jsonl --seed 1 --compare --frontend vllm-rs --out seen2
grep -Eq '^TTFT +mean .* \+0\.00%' out || fail "by a client's clock: $(cat out)"
bad "no frontend 'nginx'" simulate --profile <(echo '{"name":"x","frontend":{"kind":"nginx"},"model":{"kind":"null"}}')
