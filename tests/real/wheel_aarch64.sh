# shellcheck shell=bash disable=SC2154
# The wheel of the other architecture, built here, installed by its pip and run by qemu.
arch=aarch64 debian=arm64
[ "$(uname -m)" != $arch ] || skip "this machine is one: see wheel"
[ "$(id -u)" -eq 0 ] || skip "needs root"
"$VT_ROOT/tools/wheel" $arch >built || fail "no wheel"
wheel=$(tail -n 1 built)
echo "${wheel##*/}: $(($(stat -c %s "$wheel") / 1000)) kB"
# shellcheck source=tools/lib.sh
. "$VT_ROOT/tools/lib.sh"
need qemu-user-static

# The kernel is told who runs such programs, as Debian's package does where systemd runs.
formats=/proc/sys/fs/binfmt_misc
[ -e $formats/register ] || mount -t binfmt_misc binfmt_misc $formats
if [ ! -e $formats/qemu-$arch ]; then
    magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
    mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
    echo ":qemu-$arch:M::$magic:$mask:/usr/bin/qemu-$arch-static:OCF" >$formats/register
    forget() {
        stop_all
        echo -1 >$formats/qemu-$arch
    }
    trap forget EXIT
fi

"$VT_ROOT/tools/debian_tree" tree "" $debian python3 python3-pip
version=$(within tree python3 -c 'import platform, sys; print("%d.%d" % sys.version_info[:2], platform.machine())')
[ "${version#* }" = $arch ] || fail "this is no $arch: $version"
python3 -m pip download -q -d tree/wheels --only-binary=:all: --python-version "${version% *}" \
    --platform manylinux_2_17_$arch --platform manylinux2014_$arch cffi 2>pip.log || fail "$(cat pip.log)"
cp "$wheel" tree/wheels
begun=$SECONDS
within tree python3 -m pip install -q --no-index --find-links /wheels --break-system-packages vtwin 2>pip.log ||
    fail "$(cat pip.log)"
echo "installed after $((SECONDS - begun)) s"
within tree vtwin --version
within tree vtwin --version | grep -q $arch || fail "it does not say for what it was built"
asked=(simulate --num-prompts 100 --json)
"$VTWIN" "${asked[@]}" >expected
within tree vtwin "${asked[@]}" >there || fail "it does not run"
cmp there expected || echo "its libm has other last digits" # docs/determinism.md
# The package, and a server: qemu has no epoll_pwait2, as old kernels have not.
within tree python3 - <<'P' || fail "the package"
import json, platform, urllib.request, vtwin
a = vtwin.simulate("qwen3-8b", gpu="H200", num_prompts=20)
assert a["requests"] == 20 and platform.machine() == "aarch64"
with vtwin.Engine("qwen3-8b-h200") as e:
    e.add(1, prompt_tokens=100, output_tokens=5)
    assert sum(o.new_tokens for o in e.run()) == 5
with vtwin.Server("qwen3-8b", gpu="H200", served_model_name="tiny") as s:
    body = json.dumps({"model": "tiny", "prompt": "x", "max_tokens": 7}).encode()
    r = urllib.request.Request(s.base_url + "/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(r, timeout=60) as reply:
        assert json.load(reply)["usage"]["completion_tokens"] == 7
print("package and server run on", platform.machine())
P
rm -rf tree
