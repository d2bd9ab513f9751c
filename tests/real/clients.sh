# Two API servers, so two clients of one engine: each gets the answers to its own requests,
# and only one of them the statistics. Then the same with the recorder between them.
servers_share() { # what stands between
    wait_until_up
    check clients "$url"
    both_end
    mv frontend.log "frontend-$1.log"
}

python_frontend --api-server-count 2
play --log-requests
servers_share nothing

python_frontend --api-server-count 2
record --trace-out trace.jsonl
to=$tap play
servers_share recorder
ends_well record "$record"
[ "$(wc -l <trace.jsonl)" -eq 50 ] || fail "trace.jsonl has $(wc -l <trace.jsonl) lines and not 1 + 49"
[ "$(grep -o '"client_index":[0-9]' trace.jsonl | sort -u | wc -l)" -eq 2 ] || fail "only one API server sent requests"
