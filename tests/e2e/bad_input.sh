# Bad usage and bad input: exit 2, one line that says where, nothing left behind.
simulate=(simulate --out report)

# ---- usage ----
bad "unknown flag '--max-num-seq'.*did you mean '--max-num-seqs'" simulate --max-num-seq 3
bad "unknown flag '-x'" simulate -x
bad "unknown command 'simulte'.*did you mean 'simulate'" simulte
bad "before a command" --json simulate
bad "seed needs a value" simulate --seed
bad "seed needs a value" simulate --seed --json
bad "json takes no value" simulate --json=yes
bad "'workload.yaml' is neither a known model nor a config.json" simulate workload.yaml
bad "one argument too many" simulate qwen3-8b workload.yaml
bad "give one of them" simulate --trace a --workload b
bad "usage: vtwin profile" profile
bad "usage: vtwin profile" profile show
bad "usage: vtwin model" model
bad "nosuch" profile show nosuch
bad "no completion for 'fish'" completion fish
bad "no command 'x'" man x
bad "unknown command 'x'" help x
bad "^vtwin: unknown command 'a.b'" $'a\nb'

# ---- numbers ----
for flag in max-num-seqs max-num-batched-tokens max-model-len block-size num-gpu-blocks; do
    for value in 0 -1 nan inf 1e3 4x '' 99999999999999999999; do
        bad "--$flag" "${simulate[@]}" --$flag="$value"
    done
done
for value in -0.1 1.5 nan inf x ''; do
    bad "--watermark" "${simulate[@]}" --watermark="$value"
    bad "--speculative-acceptance" "${simulate[@]}" --speculative-acceptance="$value"
done
bad "--seed" "${simulate[@]}" --seed -1
bad "--concurrency" "${simulate[@]}" --arrivals closed --concurrency 0
bad "--arrivals closed needs --concurrency" "${simulate[@]}" --arrivals closed
bad "--concurrency needs --arrivals" "${simulate[@]}" --concurrency 4
bad "--arrivals: 'never' is none of recorded, closed, session" simulate --arrivals never
bad "--scheduling-policy: 'sjf'" simulate --scheduling-policy sjf
bad "--compat: 'x'" simulate --compat x
bad "num-gpu-blocks" "${simulate[@]}" --num-gpu-blocks 1

# ---- times ----
for value in -1 x 1m 5ss '' nan; do
    for flag in slo-ttft-p99 slo-tpot-p99 slo-itl-p99 slo-e2e-p99; do
        bad "--$flag $value: not a time from 0" capacity --$flag="$value"
    done
    bad "--routing-staleness-ms: '$value' is not a time from 0 to .* ms" simulate \
        --routing-staleness-ms="$value"
    bad "--request-timeout: '$value' is not a whole number" bench serve \
        --request-timeout="$value"
done
bad "--request-timeout: '1500ms' is not a whole number" bench serve --request-timeout 1500ms
# A limit below a millisecond looks like seconds; with a unit it is meant.
bad "--slo-ttft-p99 0.5: 0.5 ms\? give 500 for 0.5 seconds, or 0.5s; --slo-ttft-p99 0.5ms if you mean it" \
    capacity --slo-ttft-p99 0.5
bad "0.05 ms\? give 50 for 0.05 seconds" tune --slo-tpot-p99 0.05
bad "0.9 ms\? give 900 .* --max-latency-allowed-ms 0.9ms" tune --max-latency-allowed-ms 0.9
bad "chunked prefill" "${simulate[@]}" --no-enable-chunked-prefill \
    --max-num-batched-tokens 1024 --max-model-len 8192

# ---- models and profiles ----
for spec in '' : nosuch nosuch:a=1 blackbox blackbox: blackbox:alpha=1,2,3 \
    blackbox:alpha=1,2,3,beta=1,2 blackbox:alpha=1,2,3,beta=nan,1,1 \
    blackbox:alpha=1,2,3,beta=-5,1,1 blackbox:alpha=1,2,3,beta=inf,1,1 \
    blackbox:alpha=1,2,3,beta=1,2,3,gamma=4 knob:time_to_first_token=x; do
    bad "--latency" "${simulate[@]}" --latency "$spec"
done
bad "nosuch" "${simulate[@]}" --profile nosuch
echo '{"name": "half", "model"' >half.json
bad "half.json: line [12]" "${simulate[@]}" --profile half.json
printf '{\n"name": "p",\n"model": {"kind": "nosuch"}\n}\n' >kind.json
bad "kind.json: .*nosuch" "${simulate[@]}" --profile kind.json

# ---- files that are not there, or not files ----
mkdir folder
for flag in workload trace profile; do
    bad "none" "${simulate[@]}" --$flag none
    bad "folder" "${simulate[@]}" --$flag folder
    bad "^vtwin: " "${simulate[@]}" --$flag ''
    bad "null" "${simulate[@]}" --$flag /dev/null
done
bad "oracle" simulate --oracle oracle.json
touch plain
bad "plain" simulate --out plain/report
bad "plain" simulate --out plain

# ---- YAML ----
yaml() { # PATTERN; the file comes on stdin
    cat >w.yaml
    bad "w.yaml: $1" "${simulate[@]}" --workload w.yaml
}
yaml 'line 3' <<'END'
seed: 1
arrival: [unclosed
END
yaml "line 3.*'outptu'" <<'END'
duration_s: 2
arrival: {process: poisson, rate: 8}
outptu: 5
END
yaml 'line 2' <<'END'
duration_s: 2
arrival: {process: poisson, rate: -8}
prompt: 10
output: 5
END
yaml 'line 2' <<'END'
duration_s: 2
arrival: {process: poisson, rate: .nan}
prompt: 10
output: 5
END
yaml 'line 2' <<'END'
duration_s: 2
arrival: {process: poissson, rate: 8}
prompt: 10
output: 5
END
yaml 'line 3' <<'END'
duration_s: 2
arrival: {process: poisson, rate: 8}
prompt: -10
output: 5
END
yaml 'line 3' <<'END'
duration_s: 2
arrival: {process: poisson, rate: 8}
prompt: {dist: empirical, file: none.csv}
output: 5
END
yaml '' <<'END'
END
printf 'seed: 1\n\x01\xff\xfe' | yaml 'line 2'

# ---- traces ----
trace() { # PATTERN; the file comes on stdin
    cat >t.jsonl
    bad "t.jsonl: $1" "${simulate[@]}" --trace t.jsonl
    gzip -c t.jsonl >t.jsonl.gz
    bad "t.jsonl.gz: $1" "${simulate[@]}" --trace t.jsonl.gz
}
request='{"id":"a","arrival_ms":0,"prompt_tokens":10,"output_tokens":5'
trace 'line 2' <<END
$request}
not json
END
trace 'line 1' <<END
${request/10/-10}}
END
trace 'line 1' <<END
${request/10/NaN}}
END
trace 'line 1' <<END
${request/:0/:1e400}}
END
trace 'line 1' <<END
${request/:0/:-5}}
END
trace 'line 2' <<END
$request}
$request}
END
trace "line 1" <<END
{"id":"a","arrival_ms":0,"prompt_tokens":10}
END
trace 'line 1.*segments' <<END
$request,"segments":[["x",9]]}
END
trace 'line 1' <<END
$request,"ttft_ms":-1,"itl_ms":[1,1,1,1]}
END
trace 'line 1' <<END
[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[
END
simulate+=(--whole)
printf '%s}\n%s' "$request" "${request/a/b}" | trace 'line 2'

# a gz that ends early, and one with a damaged byte
for i in $(seq 2000); do echo "${request/\"a\"/\"$i\"}}"; done | gzip -c >whole.gz
head -c 2000 whole.gz >short.gz
bad 'short.gz: line [0-9]+' "${simulate[@]}" --trace short.gz
{ head -c 1000 whole.gz; printf '\377\377\377\377'; tail -c +1005 whole.gz; } >broken.gz
bad 'broken.gz: line [0-9]+' "${simulate[@]}" --trace broken.gz
bad 'short.gz: ' "${simulate[@]}" --workload short.gz
bad 'short.gz: ' "${simulate[@]}" --quiet --requests short.gz

# ---- CSV ----
csv() { # PATTERN; rows come on stdin
    { echo id,arrival_us,input_tokens,output_tokens; cat; } >r.csv
    bad "r.csv: $1" "${simulate[@]}" --trace r.csv
}
csv 'line 2' <<<'a,0,10'
csv 'line 2' <<<'a,0,10,5,6,7,8'
csv 'line 2' <<<'a,0,-10,5'
csv 'line 2' <<<'a,0,ten,5'
csv 'line 2' <<<'a,nan,10,5'
csv 'line 2' <<<'a,-1,10,5'
csv 'line 2' <<<'a,0,10,99999999999'
csv 'line 2' <<<'"a,0,10,5'
csv 'line 3' < <(printf 'a,0,10,5\nb,1,10,')
printf 'id,arrival_us,input_tokens\na,0,10\n' >r.csv
bad 'r.csv: line 1' "${simulate[@]}" --trace r.csv

# ---- requests that this engine can never serve ----
csv "line 2: request 'a': .*max-model-len" <<<'a,0,40000,5'
printf 'id,arrival_us,input_tokens,output_tokens\na,0,100,5\nlong,0,9000,5\n' >r.csv
bad 'r.csv.*long.*max-model-len' "${simulate[@]}" --trace r.csv --max-model-len 8192
bad 'r.csv.*long' "${simulate[@]}" --trace r.csv --num-gpu-blocks 100

# ---- comparisons need something measured ----
printf '%s}\n' "$request" >t.jsonl
bad 't.jsonl: --compare needs' "${simulate[@]}" --trace t.jsonl --compare
bad 'compare needs' "${simulate[@]}" --compare
