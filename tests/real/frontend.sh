# shellcheck shell=bash disable=SC2154
# The Rust frontend of a release that ./test does not run: every suite of tests/e2e/play.
"$VT_ROOT/tools/fetch_clients"
export VT_FRONTENDS=$VT_ROOT/build/frontends VT_FRONTEND=$VERSION PYTHONPATH=$VT_ROOT/build/clients
unset PYTHONHASHSEED VLLM_SERVER_DEV_MODE # the suites set what they need
failed=0
for suite in "$VT_ROOT"/tests/e2e/play/test_*.py; do
    name=$(basename "$suite" .py)
    if timeout -k 10 300 python3 "$suite" >"$name.log" 2>&1; then
        echo "ok $name: $(grep -E '^Ran ' "$name.log")"
    else
        echo "FAIL $name: $(grep -E '^(FAILED|ERROR|FAIL|skipped)' "$name.log" | tr '\n' ' ')"
        failed=1
    fi
done
[ $failed -eq 0 ]
