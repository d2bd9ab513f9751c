# Many engines behind a router.

# One instance is what no fleet is, but for the rows of instances.
good simulate --json
cp out alone.json
good simulate --json --instances 1
sed '/"settings"/,$d' out >one.json
sed '/"settings"/,$d' alone.json | cmp - one.json
grep -q '"instances": \[' out || fail "no instances in the JSON"

# Same input and seed: the same bytes, whatever the routing.
for routing in round-robin random power-of-two weighted; do
    good simulate --instances 3 --routing $routing --out a
    cp out a.out
    good simulate --instances 3 --routing $routing --out b
    sed 's|report: b/|report: a/|' out | cmp - a.out
    for f in requests.jsonl steps.jsonl summary.json; do
        cmp a/$f b/$f
    done
done
for i in 0 1 2; do
    grep -q "\"instance\":$i" a/requests.jsonl || fail "instance $i served nothing"
    grep -q "\"instance\":$i" a/steps.jsonl || fail "instance $i made no step"
done
# What a fleet served is a trace like others.
good simulate --trace a/requests.jsonl --quiet

# Each kind of fleet.
good simulate --replica qwen3-8b-h200:2 --replica llama-70b-fp8-h200 --routing least-loaded
grep -q 'profile      qwen3-8b-h200:2,llama-70b-fp8-h200:1' out || fail "profiles not named"
[ "$(grep -c '^ *[0-9]* *all ' out)" -eq 3 ] || fail "not three rows"
good simulate --instances 3 --prefill-instances 1
grep -q '^ *0 *prefill ' out || fail "no prefill row"
grep -q '^ *2 *decode ' out || fail "no decode row"
good simulate --autoscale 1:3 --autoscale-startup-s 2 --autoscale-interval-s 1 \
    --num-gpu-blocks 1200
[ "$(grep -c '^ *[0-9]* *all ' out)" -ge 2 ] || fail "nothing was added"
good simulate --instances 4 --compat blis
good simulate --num-speculative-tokens 3 --speculative-acceptance 0.8,0.6,0.5 \
    --speculative-draft-us 300 --instances 2

# Ranks of a mixture go in lockstep, of other models not; flags decide where nothing is known.
mixture=(--profile qwen3-30b-a3b-h200 --data-parallel-size 2)
good simulate "${mixture[@]}" --instances 2 --routing vllm-dp
grep -q '^ranks        2 in lockstep$' out || fail "a mixture's ranks are not in lockstep"
grep -q '^basis        transferred from qwen3-30b-a3b-h200;' out || fail "measured of one engine"
grep -q '^outside      experts shared by 2 ranks' out || fail "nothing is said of shared experts"
grep -Eq '^waves        [0-9]+; [0-9]+ passes, [0-9]+ dummy steps; [0-9.]+ % of' out ||
    fail "nothing told of waves"
[ "$(grep -c '^ *[0-9]* *all ' out)" -eq 4 ] || fail "not two deployments of two"
good simulate "${mixture[@]}" --json --out a
cp out a.out
good simulate "${mixture[@]}" --json --out b
sed 's|report: b/|report: a/|' out | cmp - a.out
cmp a/steps.jsonl b/steps.jsonl
grep -q '"dummy_steps": [1-9]' out || fail "no dummy steps in the JSON"
! grep -q '"decodes":0,"decode_ctx":0,.*"prefill":\[\]' a/steps.jsonl || fail "dummies in steps"
good simulate "${mixture[@]}" --json --vllm-version 0.32
cp out a.out
good simulate "${mixture[@]}" --json --vllm-version 0.32 --dp-sync-interval 3
! cmp -s out a.out || fail "--dp-sync-interval changes nothing"
bad "dp-sync-interval came with vLLM 0.30, but this is 0.29" simulate "${mixture[@]}" \
    --vllm-version 0.29 --dp-sync-interval 3
good simulate --no-async-scheduling --num-speculative-tokens 2 --speculative-acceptance 0.8,0.6
grep -q '^outside      synchronous scheduling: it was measured with asynchronous$' out || fail "async"
grep -q '^outside      drafts of 2 tokens: it was measured without any$' out || fail "drafts"
good simulate --data-parallel-size 2
grep -q '^basis        measured;' out || fail "independent engines are as measured"
grep -q '^ranks        2 independent of each other$' out || fail "dense ranks in lockstep"
good simulate --data-parallel-size 2 --latency linear:base=1000
grep -q 'ranks .* independent of each other: the model is not known' out || fail "unknown model"
good simulate --data-parallel-size 2 --latency linear:base=1000 --enable-expert-parallel
grep -q 'ranks .* in lockstep: as --enable-expert-parallel says' out || fail "--enable-expert-parallel"
bad "'Qwen/Qwen3-8B' is no mixture of experts" simulate --data-parallel-size 2 \
    --enable-expert-parallel
rates=(--rates 10 --seeds 1 --once --num-prompts 200 --json --quiet)
good capacity --profile qwen3-30b-a3b-h200 --instances 2 "${rates[@]}"
cp out alone.json
good capacity "${mixture[@]}" "${rates[@]}"
! cmp -s out alone.json || fail "capacity: ranks are not in lockstep"
vtwin capacity --latency linear:base=1000 --data-parallel-size 2 --rates 10 --seeds 1 --once --num-prompts 20
grep -q 'engines are independent of each other: the model is not known' err || fail "capacity: silent"

bad "--instances" simulate --instances 0
bad "--routing: unknown routing 'round-robbin' .did you mean 'round-robin'" \
    simulate --instances 2 --routing round-robbin
bad "--replica and --instances" simulate --instances 2 --replica qwen3-8b-h200
bad "--replica" simulate --replica no-such-profile
bad "leave none to decode" simulate --instances 2 --prefill-instances 2
bad "MIN:MAX" simulate --autoscale 4
bad "autoscaling keeps 2 to 4" simulate --autoscale 2:4 --instances 1
bad "0 < down < up" simulate --autoscale 2:4 --autoscale-down 0.9
bad "kv-bytes-per-token" simulate --instances 2 --prefill-instances 1 --latency null
bad "more often than the one before" simulate --num-speculative-tokens 2 \
    --speculative-acceptance 0.5,0.6
bad "must be 0 to 1, or a list" simulate --speculative-acceptance 0.5,

# Threads change no byte against one event after the other, which --out asks for; without
# think time there is nothing for a second one to do.
for think in 0.5 0; do
    cat >sessions.yaml <<END
requests: 400
arrival: {process: poisson, rate: 12}
prompt: {dist: uniform, min: 20, max: 200}
output: {dist: uniform, min: 1, max: 40}
sessions: {turns: 4, starters: 5, starter: 300, think_time_s: {dist: uniform, min: $think, max: 3}}
END
    for routing in round-robin weighted least-loaded; do
        fleet=(--instances 5 --workload sessions.yaml --routing "$routing" --json
            --num-gpu-blocks 300 --max-model-len 4000)
        good simulate "${fleet[@]}" --out events
        cp out events.json
        for threads in 1 2 8; do
            good simulate "${fleet[@]}" --threads $threads
            cmp out events.json
        done
    done
done
for more in '--autoscale 1:3' '--prefill-instances 1 --instances 3' \
    '--compat blis --instances 3'; do
    # shellcheck disable=SC2086
    good simulate $more --threads 1 --json
    cp out one.json
    # shellcheck disable=SC2086
    good simulate $more --threads 3 --json
    cmp out one.json
done
