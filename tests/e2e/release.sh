# release.sh - two releases of one commit are the same bytes, wherever and by whom, and name
# their commit; what they unpack to needs no git to say which it is.
# shellcheck shell=bash

git -C "$VT_ROOT" rev-parse HEAD >/dev/null 2>&1 || exit 77
"$VT_ROOT/tools/release" "$PWD/one" >log 2>&1 || fail "$(cat log)"
(umask 077 && TZ=Asia/Tokyo "$VT_ROOT/tools/release" "$PWD/two" >log 2>&1) || fail "$(cat log)"
cmp one/vtwin-*.tar.gz two/vtwin-*.tar.gz || fail "two runs differ"
(cd one && sha256sum --check --quiet vtwin-*.sha256) || fail "its checksum"

tar -xzf one/vtwin-*.tar.gz
cd vtwin-*/ || fail "nothing unpacked"
[ "$(cat COMMIT)" = "$(git -C "$VT_ROOT" rev-parse HEAD)" ] || fail "COMMIT: $(cat COMMIT)"
tools/make_build_info info.c "some build"
grep -q "\"$(cut -c 1-12 COMMIT)\"" info.c || fail "$(cat info.c)"
"$VTWIN" --version | grep -q "^vtwin $(basename "$PWD" | cut -d- -f2) " || fail "another version"
