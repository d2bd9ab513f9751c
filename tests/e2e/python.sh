# python.sh - the Python package of the build tree: what its docstrings show, that it says what the
# program says, its fixtures, its types.
# shellcheck shell=bash

tree=$(dirname "$VTWIN")/python
python3 -c 'import cffi, pytest, mypy' 2>/dev/null || exit 77 # tools/fetch_clients
[ -e "$tree/vtwin/_flags.py" ] || exit 77
export PYTHONPATH=$tree:$PYTHONPATH PYTEST_DISABLE_PLUGIN_AUTOLOAD=1
python3 -m pytest -q -p no:cacheprovider -p vtwin.pytest_plugin --doctest-modules \
    --ignore-glob='*/__main__.py' "$tree/vtwin" "$VT_ROOT/tests/python" >log 2>&1 || fail "$(cat log)"

# Types of the package, and of who uses it: a flag that no command has is found.
cat >uses.py <<'END'
import vtwin

a: vtwin.Answer = vtwin.simulate("qwen3-8b", gpu="H200", max_num_seqs=64, slo={"ttft_p99": 200})
vtwin.Engine().add(1, 2, 3)
vtwin.simulate(max_num_seq=64)
END
if python3 -m mypy --strict --python-version 3.11 --cache-dir cache uses.py >log 2>&1; then
    fail "mypy finds no bad flag"
fi
grep -q 'uses.py:5: error: Unexpected keyword argument "max_num_seq"' log || fail "$(cat log)"
if grep -v uses.py log | grep -q ': error:'; then fail "$(cat log)"; fi
