# Traffic on the command line, in the words of vllm bench: simulate, capacity and tune.
json() { # EXPRESSION over d, the output
    python3 -c "import json; d = json.load(open('out')); assert $1, d" || fail "$1"
}

# The question as one would ask it.
good simulate meta-llama/Llama-3.1-8B --gpu A100-80 --request-rate 6 --num-prompts 300 \
    --workload sharegpt --json
json "d['requests'] == 300 and d['workload'] == 'sharegpt' and 40 < d['duration_s'] < 80"

# Datasets as bench makes them.
good simulate --dataset-name random --input-len 100 --output-len 7 --num-prompts 20 --json
json "d['prompt_tokens'] == 2000 and d['output_tokens'] == 140"
good simulate --random-input-len 100 --random-range-ratio 0.5 --random-prefix-len 64 \
    --num-prompts 200 --request-rate 20 --json
json "200 * 64 + 200 * 90 < d['prompt_tokens'] < 200 * 64 + 200 * 110 and d['prefix_hit_rate'] > 0.3"
good simulate --dataset-name prefix_repetition --num-prompts 50 --request-rate 5 \
    --prefix-repetition-prefix-len 320 --prefix-repetition-suffix-len 10 --json
json "d['prompt_tokens'] == 50 * 330 and d['prefix_hit_rate'] > 0.5"
good simulate --dataset-name multi-turn --num-conversations 4 --num-turns 3 --think-time 1 --json
json "d['requests'] == 12"
good simulate --dataset-name sharegpt --request-rate 50 --num-prompts 50 --json
json "d['workload'] == 'sharegpt'"
good simulate --workload multiturn-starters --num-prompts 20 --json
json "d['workload'] == 'multiturn-starters' and d['requests'] == 20"

# A concurrency alone is a closed loop, with a rate it holds clients back.
good simulate --input-len 100 --output-len 50 --num-prompts 64 --max-concurrency 4 --out closed
grep -q '"concurrency":4' closed/requests.jsonl || fail "no closed loop"
good simulate --input-len 100 --output-len 50 --num-prompts 64 --max-concurrency 2 \
    --request-rate 1000 --out held
python3 - <<'P' || fail "more in flight than allowed"
import json
rows = [json.loads(l) for l in open("held/requests.jsonl")][1:]
assert len(rows) == 64 and max(r["concurrency"] for r in rows) == 2
P

# Files: counted by their bytes, which is said, or by a tokenizer.
python3 - <<'P'
import json
ask = "x" * 400, "y" * 80
json.dump([{"conversations": [{"value": ask[0]}, {"value": ask[1]}]}] * 5, open("share.json", "w"))
with open("custom.jsonl", "w") as f:
    for i in range(5):
        print(json.dumps({"prompt": "z" * 200, "output_tokens": 9}), file=f)
P
vtwin simulate --dataset-path share.json --num-prompts 10 --json
json "d['prompt_tokens'] == 1000 and d['output_tokens'] == 200"
grep -q 'share.json: 4 bytes are taken for a token' err || fail "$(cat err)"
vtwin simulate --dataset-path custom.jsonl --custom-output-len -1 --num-prompts 10 \
    --bytes-per-token 2 --json
json "d['prompt_tokens'] == 1000 and d['output_tokens'] == 90"
good simulate --dataset-name sharegpt --dataset-path share.json --num-prompts 10 \
    --tokenizer "$VT_ROOT/tests/cases/tiny-qwen3" --json
json "d['prompt_tokens'] != 1000 and d['requests'] == 10"

# A trace keeps its lengths and the shape of its gaps: the first so many, faster or slower,
# all at once, or so many in flight.
printf 'id,arrival_us,input_tokens,output_tokens\n' >gaps.csv
printf '%s\n' a,1000000,10,2 b,2000000,11,3 c,5000000,12,4 d,5000000,13,5 >>gaps.csv
arrivals() { # FLAGS...: of each request, in s
    good simulate --trace gaps.csv "$@" --out paced --quiet
    python3 - <<'Q'
import json
print([json.loads(l)["arrival_ms"] / 1e3 for l in list(open("paced/requests.jsonl"))[1:]])
Q
}
[ "$(arrivals)" = '[1.0, 2.0, 5.0, 5.0]' ] || fail "as it was"
[ "$(arrivals --request-rate 1.5)" = '[1.0, 1.5, 3.0, 3.0]' ] || fail "three in two seconds"
[ "$(arrivals --request-rate inf)" = '[1.0, 1.0, 1.0, 1.0]' ] || fail "all at once"
[ "$(arrivals --num-prompts 3 --request-rate 4)" = '[1.0, 1.125, 1.5]' ] || fail "the first three"
arrivals --request-rate 1000 --max-concurrency 1 >held.txt
python3 - <<'P' || fail "more in flight than allowed"
import json
rows = [json.loads(l) for l in open("paced/requests.jsonl")][1:]
assert [r["concurrency"] for r in rows] == [1, 1, 1, 1]
P

# capacity and tune take the same.
vtwin capacity --input-len 200 --output-len 20 --request-rate 40 --max-concurrency 1 --seeds 1 --json
[ "$status" -eq 1 ] || fail "a rate that the client cannot send is borne"
json "d['points'][0]['broken'] == 'rate' and d['points'][0]['achieved'] < 20"
json "d['settings']['max_concurrency'] == 1 and d['points'][0]['ttft_ms']['p99'] < 100"
good capacity --input-len 200 --output-len 20 --num-prompts 100 --request-rate 2 --seeds 1 --json
json "d['workload'] == 'random' and [p['rate'] for p in d['points']] == [2]"
good tune --dataset-name random --input-len 200 --output-len 20 --num-prompts 50 \
    --max-num-seqs 8,64 --max-num-batched-tokens 2048 --json
json "d['workload'] == 'random'"

# Old spellings work, and are told.
vtwin capacity --requests 50 --rates 2 --seeds 1 --json
[ "$status" -eq 0 ] || fail "$(cat err)"
grep -qx 'vtwin: note: --requests is now --num-prompts' err || fail "$(cat err)"
printf 'id,arrival_us,input_tokens,output_tokens\na,0,10,2\n' >list.csv
vtwin simulate --requests list.csv --json
json "d['requests'] == 1"
grep -qx 'vtwin: note: --requests is now --trace' err || fail "$(cat err)"
good simulate --trace list.csv --json
json "d['requests'] == 1"

# What cannot be is refused with a reason, what is not known with the nearest.
bad "unknown workload 'sharegtp' \(did you mean 'sharegpt'" simulate --workload sharegtp
bad "'nothing-like-it' is no file and no workload: agent, chat" capacity --workload nothing-like-it
bad '--workload and --dataset-name: give one of them' simulate --workload chat --dataset-name random
bad '--burstiness: a trace has its own' simulate --trace list.csv --burstiness 2
bad '--request-rate: --compare is with requests as they were measured' \
    simulate --trace held --compare --request-rate 5
bad 'list.csv: has 1 requests, not 2' simulate --trace list.csv --num-prompts 2
bad 'dataset .random. is made up' simulate --dataset-name random --dataset-path list.csv
bad 'custom needs --dataset-path' tune --dataset-name custom
bad '--request-rate inf: give a number' capacity --request-rate inf

# What is built in.
good workload list
[ "$(wc -l <out)" -ge 11 ] || fail "$(cat out)"
grep -Eq '^sharegpt +2[0-9]{2} +[12][0-9]{2}  ShareGPT as' out || fail "$(cat out)"
good workload list --json
json "{'chat', 'code', 'rag', 'agent', 'summarize'} <= {w['name'] for w in d}"
good workload show rag
grep -q '^name: rag$' out || fail "$(cat out)"
bad "did you mean 'rag'" workload show rog

# Traffic that flags describe, as a file that makes the same requests by itself; and the engine
# beside it, as a profile.
same() { # FLAGS... : of traffic
    local engine=(llama-3.1-8b --gpu A100-80 --max-num-seqs 64)
    good workload show "$@"
    mv out made.yaml
    good profile make "${engine[@]}" -o made.json
    good simulate "${engine[@]}" "$@" --json
    mv out want.json
    good simulate --profile made.json --workload made.yaml --json
    json "(lambda w: all(d[k] == w[k] for k in ('requests', 'steps', 'duration_s', 'ttft_ms',
        'tpot_ms', 'itl_ms', 'e2e_ms', 'output_tok_per_s')))(json.load(open('want.json')))"
}
same --workload sharegpt --request-rate 12 --num-prompts 60 --seed 3
same --workload multiturn-starters --request-rate 2 --num-prompts 40 --burstiness 0.5
same --input-len 300 --random-range-ratio 0.3 --num-prompts 30
same --workload chat --output-len 20 --num-prompts 30 --max-concurrency 4 --request-rate inf
bad 'has no field in a workload file' workload show --workload chat --max-concurrency 4
bad 'a trace is a file already' workload show --trace list.csv
bad 'with flags it is --workload rag' workload show rag --num-prompts 5
