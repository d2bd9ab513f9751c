# wheel.sh - tools/wheel refuses a file that is not what its name says; pyproject.toml offers what
# the program's messages name.
# shellcheck shell=bash

make() { # NAME FILES...: a wheel with these inside
    python3 - "$@" <<'P'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as z:
    for i, path in enumerate(sys.argv[2:]):
        z.write(path, f"vtwin/{i}")
P
}
refused() { # WORDS NAME FILES...
    local words=$1
    shift
    make "$@"
    if "$VT_ROOT/tools/wheel" --check "$1" 2>err; then fail "$1 is taken: $words"; fi
    grep -q -- "$words" err || fail "$1: $(cat err)"
}
this=$(uname -m)
refused 'needs what is not inside: .*libzmq' "vtwin-1-py3-none-manylinux_2_99_$this.whl" "$VTWIN" "$VTWIN"
refused 'needs glibc 2\.[0-9]*, and says 2.2$' "vtwin-1-py3-none-manylinux_2_2_$this.whl" "$VTWIN" "$VTWIN"
refused 'not for riscv64' vtwin-1-py3-none-manylinux_2_99_riscv64.whl "$VTWIN" "$VTWIN"
refused 'not both inside' "vtwin-1-py3-none-manylinux_2_99_$this.whl" "$VT_ROOT/LICENSE"
refused 'its name has no glibc' "vtwin-1-py3-none-linux_$this.whl" "$VT_ROOT/LICENSE"
sleep=$(command -v sleep) # of the C library alone
make "vtwin-1-py3-none-manylinux_2_99_$this.whl" "$sleep" "$sleep"
"$VT_ROOT/tools/wheel" --check "vtwin-1-py3-none-manylinux_2_99_$this.whl" || fail "a good one is refused"

python3 - "$VT_ROOT" <<'P' || fail "pyproject.toml"
import pathlib, re, sys
try:
    import tomllib
except ImportError:
    sys.exit()
root = pathlib.Path(sys.argv[1])
project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
named = set()
for path in [*root.glob("src/cli/*.c"), *root.glob("python/vtwin/*.py"), *root.glob("docs/*.md")]:
    named |= set(re.findall(r"vtwin\[(\w+)\]", path.read_text()))
assert named and named <= set(project["optional-dependencies"]), named
P
