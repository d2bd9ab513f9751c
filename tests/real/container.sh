# shellcheck shell=bash disable=SC2154
# The container file's steps, run in a tree by debootstrap; what comes out is weighed and started.
[ "$(id -u)" -eq 0 ] || skip "needs root"
commit=$(git -C "$VT_ROOT" rev-parse HEAD 2>/dev/null || echo unknown)
python3 "$tests/container.py" "$VT_ROOT/packaging/Containerfile" "$VT_ROOT" "$PWD/image" "COMMIT=$commit" >log 2>&1 ||
    fail "$(tail -n 20 log)"
grep -E '^(the image weighs|healthy after|ran as)' log
[ "$commit" = unknown ] || chroot image/stage1 /usr/bin/vtwin --version | grep -q "${commit:0:12}" || fail "its commit"
rm -rf image
