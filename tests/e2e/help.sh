# Every command explains itself, and its examples work as pasted.
good --version
grep -Eq '^vtwin [0-9]+\.[0-9]+\.[0-9]+ \(commit ([0-9a-f]{12}\+?|unknown); .+\)$' out
good --help
cp out top
good help
cmp out top

mkdir work
cp -r "$VT_ROOT/profiles" work/ 2>/dev/null || true
ln -s "$VT_ROOT/tests" "$VT_ROOT/examples" work/
printf '#!/bin/sh\nexec "%s" "$@"\n' "$VTWIN" >work/run
chmod +x work/run
commands=$(sed -n 's/^  \([a-z]*\)  .*/\1/p' top)
[ "$(echo "$commands" | wc -l)" -ge 5 ] || fail "few commands: $commands"
for command in $commands; do
    good "$command" --help
    cp out text
    good help "$command"
    cmp out text
    ! awk 'length > 120' text | grep . || fail "long lines in $command --help"
    good man "$command"
    grep -q '^\.SH NAME' out
    if command -v man >/dev/null; then
        LC_ALL=C man --warnings -l out 2>warnings >/dev/null || fail "man $command"
        [ ! -s warnings ] || fail "man $command: $(cat warnings)"
    fi
    sed -n 's/^  \$ //p' text >examples
    [ -s examples ] || fail "$command --help has no example"
    # LeakSanitizer stops a process to look at it, and hangs if timeout(1) signals the
    # group just then; other tests look for leaks.
    while read -r line; do
        (cd work && ASAN_OPTIONS=detect_leaks=0 bash -e -c "$line" >log 2>&1) ||
            fail "example: $line: $(cat work/log)"
    done <examples
done
