# shellcheck shell=bash disable=SC2154
# The wheel as users get it: one file that pip, pipx and uvx install, with the program, libvtwin
# and the package inside, also on an older Debian with an older Python.

"$VT_ROOT/tools/wheel" >built || fail "no wheel"
wheel=$(tail -n 1 built)
echo "${wheel##*/}: $(($(stat -c %s "$wheel") / 1000)) kB"
python3 -m venv tools
tools/bin/pip install -q auditwheel uv 2>pip.log || fail "$(cat pip.log)"
# Of another's judgement: no newer a platform than its name says.
tools/bin/auditwheel show "$wheel" >audit 2>&1 || fail "$(cat audit)"
grep -q "manylinux_2_17_$(uname -m)" audit || fail "$(cat audit)"

# ---- pip, in a fresh environment ---------------------------------------------------------
python3 -m venv venv
venv/bin/pip install -q "$wheel[pandas]" pytest 2>pip.log || fail "$(cat pip.log)"
own=$PATH
PATH=$PWD/venv/bin:$own
[ "$(command -v vtwin)" = "$PWD/venv/bin/vtwin" ] || fail "no vtwin on PATH"
vtwin --version
[ "$(vtwin --version | head -n 1 | cut -d ' ' -f 1,2)" = "$("$VTWIN" --version | head -n 1 | cut -d ' ' -f 1,2)" ] ||
    fail "another version"
asked=(simulate --num-prompts 200 --json)
"$VTWIN" "${asked[@]}" >expected
vtwin "${asked[@]}" | cmp - expected || fail "it computes otherwise than the program"
python3 -m vtwin "${asked[@]}" | cmp - expected || fail "python3 -m vtwin"
nm -D --defined-only venv/lib/python3*/site-packages/vtwin/lib/libvtwin.so | awk '{ print $3 }' >shown
if grep -v '^vtwin_' shown; then fail "libvtwin exports what is not its face"; fi
ls venv/lib/python3*/site-packages/vtwin-*.dist-info/licenses >licenses
[ "$(wc -l <licenses)" -ge 6 ] || fail "licenses of libraries inside: $(cat licenses)"
# The fixtures are found by their entry point, the frames by pandas.
python3 -m pytest -q -p no:cacheprovider --doctest-modules --ignore-glob='*/__main__.py' \
    --ignore-glob='*/ray.py' venv/lib/python3*/site-packages/vtwin "$VT_ROOT/tests/python" >pytest.log 2>&1 ||
    fail "$(cat pytest.log)"
tail -n 1 pytest.log
python3 - <<'P' || fail "pandas"
import vtwin
a = vtwin.simulate("qwen3-8b", gpu="H200", num_prompts=20, rows=True)
assert len(a.frame("requests")) == 20 and "p99" in a.frame().columns, a.frame()
P
status=0
vtwin tune --workers ray 2>err || status=$?
[ $status -eq 2 ] && grep -q "pip install 'vtwin\[ray\]'" err || fail "exit $status: $(cat err)"
pip install -q "$wheel[ray]" 2>pip.log || fail "no extra: $(cat pip.log)"
search=(tune --num-prompts 40 --once --seeds 1 --rates 1,20 --max-num-seqs "2,64" --json --quiet)
vtwin "${search[@]}" >tuned || fail "tune"
RAY_AUTH_MODE=disabled RAY_raylet_start_wait_time_s=120 RAY_USAGE_STATS_ENABLED=0 \
    vtwin "${search[@]}" --workers ray >tuned.ray 2>err || fail "--workers ray: $(cat err)"
cmp tuned tuned.ray || fail "Ray has another answer"
pip uninstall -q -y vtwin
if find venv -name '*vtwin*' | grep .; then fail "pip uninstall leaves these"; fi
PATH=$own

# ---- pipx and uvx, from the file ---------------------------------------------------------
command -v pipx >/dev/null || tools/bin/pip install -q pipx
export PIPX_HOME=$PWD/pipx PIPX_BIN_DIR=$PWD/pipx-bin UV_CACHE_DIR=$PWD/uv
export PATH=$own:$PWD/tools/bin
pipx install "$wheel" >pipx.log 2>&1 || fail "pipx: $(cat pipx.log)"
pipx-bin/vtwin "${asked[@]}" | cmp - expected || fail "pipx install"
pipx run --spec "$wheel" vtwin "${asked[@]}" 2>pipx.log | cmp - expected || fail "pipx run: $(cat pipx.log)"
uvx --from "$wheel" vtwin "${asked[@]}" 2>uv.log | cmp - expected || fail "uvx: $(cat uv.log)"
UV_TOOL_DIR=$PWD/uv-tools UV_TOOL_BIN_DIR=$PWD/uv-bin uv tool install "$wheel" 2>uv.log || fail "$(cat uv.log)"
uv-bin/vtwin "${asked[@]}" | cmp - expected || fail "uv tool install"
echo "pip, pipx and uvx install it"

# ---- an older Debian ---------------------------------------------------------------------
[ "$(id -u)" -eq 0 ] || skip "the rest needs root"
"$VT_ROOT/tools/debian_tree" old bullseye "$(dpkg --print-architecture)" python3 python3-pip
python3 -m pip download -q -d old/wheels --only-binary=:all: --python-version 3.9 \
    --platform "manylinux_2_17_$(uname -m)" --platform "manylinux2014_$(uname -m)" cffi 2>pip.log || fail "$(cat pip.log)"
cp "$wheel" old/wheels
within old python3 -m pip install -q --no-index --find-links /wheels vtwin 2>pip.log || fail "$(cat pip.log)"
within old ldd --version >glibc
head -n 1 glibc
within old python3 --version
within old vtwin "${asked[@]}" >there || fail "it does not run on an older Debian"
cmp there expected || echo "its libm has other last digits" # docs/determinism.md
within old python3 -c '
import vtwin
print(vtwin.simulate(num_prompts=5)["requests"], vtwin.__version__)
with vtwin.Server() as s:
    print(s.url.rpartition(":")[0])' || fail "the package does not run on an older Debian"
rm -rf old
