# shellcheck shell=bash disable=SC2154
# The Debian packages: lintian has no word against them, and they install and run in a bare Debian
# with nothing but what they depend on.
# shellcheck source=tools/lib.sh
. "$VT_ROOT/tools/lib.sh"
[ "$(id -u)" -eq 0 ] || skip "needs root"
need lintian
DEBFULLNAME="A Packager" DEBEMAIL=packager@example.org "$VT_ROOT/tools/deb" "$PWD/deb" >built || fail "no packages"
mapfile -t packages <built
for p in "${packages[@]}"; do echo "${p##*/}: $(($(stat -c %s "$p") / 1000)) kB"; done
lintian --allow-root --display-info --fail-on error,warning,info "${packages[@]}" >lintian.log 2>&1 ||
    fail "lintian: $(cat lintian.log)"
if grep . lintian.log; then fail "lintian has something to say"; fi

"$VT_ROOT/tools/debian_tree" tree
cp /etc/resolv.conf tree/etc/
cp "${packages[@]}" tree/tmp/
within tree sh -ec 'apt-get -q update && apt-get -q -y --no-install-recommends install /tmp/*.deb' >apt.log 2>&1 ||
    fail "$(tail -n 20 apt.log)"
[ "$(within tree vtwin --version | head -n 1)" = "$(deb/tree/vtwin --version | head -n 1)" ] || fail "another version"
asked=(simulate --num-prompts 200 --json)
"$VTWIN" "${asked[@]}" >expected
within tree vtwin "${asked[@]}" | cmp - expected || fail "it computes otherwise"
within tree sh -c 'test -s /usr/share/man/man1/vtwin-serve.1.gz && dpkg --verify vtwin libvtwin0 libvtwin-dev' || fail "dpkg --verify"
# The library, as a program of somebody's own would find it.
within tree sh -ec 'apt-get -q -y --no-install-recommends install gcc libc6-dev pkg-config' >>apt.log 2>&1 ||
    fail "$(tail -n 20 apt.log)"
cp "$VT_ROOT/examples/embed.c" tree/tmp/
within tree sh -ec 'cd /tmp && cc embed.c -o embed $(pkg-config --cflags --libs vtwin) && ./embed' >embed.log ||
    fail "examples/embed.c"
within tree apt-get -q -y purge vtwin libvtwin0 libvtwin-dev >>apt.log 2>&1 || fail "purge: $(tail -n 5 apt.log)"
if find tree/usr tree/etc tree/var/lib -name '*vtwin*' -not -path '*/apt/*' | grep .; then fail "apt purge leaves these"; fi
rm -rf tree deb
