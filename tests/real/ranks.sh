# Data parallel: two ranks of the twin behind one frontend and vLLM's own coordinator. Then
# the same with the recorder between them.
ranks_work() { # what stands between
    wait_until_up
    check ranks "$url"
    grep -q 'engine 1 is registered' play.log || fail "play: $(head -n 5 play.log)"
    both_end
    mv frontend.log "frontend-$1.log"
}

python_frontend --data-parallel-size 2
play --engine-count 2
ranks_work nothing

python_frontend --data-parallel-size 2
record --trace-out trace.jsonl
to=$tap play --engine-count 2
ranks_work recorder
ends_well record "$record"
[ "$(grep -o '"engine_index":[0-9]' trace.jsonl | sort -u | wc -l)" -eq 2 ] || fail "the trace knows one rank"
