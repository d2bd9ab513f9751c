# The scripts around the binary.
# tools/check_rooms finds each kind of trespass and names its line.
mkdir -p src/core src/sim/fleet src/cli
cat >src/core/a.c <<'END'
#include <stdio.h>
#include "base/base.h"
#include "base/banned.h"
#include "core/private.h"
#include "sim/sim.h"
#include "base/text.h"
#include "private.h"
END
echo '#include "core/core.h"' >src/sim/b.c
printf '#include "sim/fleet/%s.h"\n' fleet router >src/sim/d.c
cp src/sim/d.c src/sim/fleet/e.c
echo '#include "sim/sim.h"' >src/cli/c.c
if "$VT_ROOT/tools/check_rooms" "$PWD/src" >found; then fail "check_rooms finds nothing"; fi
[ "$(cut -d: -f1,2 found | sed 's|.*/src/||' | tr '\n' ' ')" = "core/a.c:5 core/a.c:6 core/a.c:7 sim/d.c:2 " ] ||
    fail "check_rooms: $(cat found)"

# tools/embed: any bytes come out as they went in.
mkdir files
head -c 5000 /dev/urandom >files/b.json
printf 'a: "\\ ??/"\n' >files/a.yaml
: >files/empty.json
"$VT_ROOT/tools/embed" table.c vt_files files/b.json files/empty.json files/a.yaml
cat >dump.c <<'END'
#include "base/base.h"
extern const struct vt_builtin vt_files_table[];
extern const size_t vt_files_count;
int main(void)
{
    for (size_t i = 0; i < vt_files_count; i++) {
        fwrite(vt_files_table[i].text, 1, vt_files_table[i].len, stdout);
        printf("%s;", vt_files_table[i].name);
    }
    return 0;
}
END
"${CC:-cc}" -std=c17 -I "$VT_ROOT/src" -o dump dump.c table.c
./dump >dumped
{ cat files/a.yaml; printf 'a.yaml;'; cat files/b.json; printf 'b.json;empty.json;'; } | cmp - dumped

# tools/fuzz_smoke --minutes: all targets, a table of what they did; a finding is kept.
mkdir -p tree/tools tree/fuzz/corpus/fuzz_good tree/build/asan/fuzz
cp "$VT_ROOT/tools/fuzz_smoke" tree/tools
touch tree/fuzz/fuzz_good.c
cat >tree/build/asan/fuzz/fuzz_good <<'END'
#!/bin/sh
echo "$@" >"$0.args"
printf '#9 NEW cov: 5 ft: 6\n#12 DONE cov: 7 ft: 8\n'
printf 'stat::number_of_executed_units: 12\nstat::average_exec_per_sec: 4\nstat::new_units_added: 3\n'
END
chmod +x tree/build/asan/fuzz/fuzz_good
tree/tools/fuzz_smoke --minutes 0.05 >table 2>err || fail "fuzz_smoke: exit $?, $(cat err)"
[ "$(tail -1 table | xargs)" = "fuzz_good 12 4 3 7" ] || fail "fuzz_smoke: $(cat table)"
grep -q -- "-max_total_time=3 .*/grown/fuzz_good .*/corpus/fuzz_good" tree/build/asan/fuzz/fuzz_good.args ||
    fail "fuzz_smoke: $(cat tree/build/asan/fuzz/fuzz_good.args)"
cat >tree/build/asan/fuzz/fuzz_bad <<'END'
#!/bin/sh
for a; do case $a in -artifact_prefix=*) echo x >"${a#*=}crash-1" ;; esac; done
exit 77
END
chmod +x tree/build/asan/fuzz/fuzz_bad
touch tree/fuzz/fuzz_bad.c
status=0
tree/tools/fuzz_smoke --minutes 0.05 >table 2>err || status=$?
[ $status -eq 1 ] && grep -q '^fuzz_bad .*found: ' table && grep -q '^fuzz_good  *12' table ||
    fail "fuzz_smoke: exit $status, $(cat table)"
[ -s tree/build/asan/fuzz/found/fuzz_bad/crash-1 ] || fail "fuzz_smoke: the finding is gone"
status=0
tree/tools/fuzz_smoke --minutes 1 fuzz_none >out 2>err || status=$?
[ $status -eq 2 ] || fail "fuzz_smoke: exit $status without the target"

# ./run goes to the binary at once, from anywhere, with arguments and exit code.
if [ "$VTWIN" = "$VT_ROOT/build/vtwin" ]; then
    "$VT_ROOT/run" --version >by_run
    "$VTWIN" --version | cmp - by_run
    status=0
    "$VT_ROOT/run" simulate --seed 'a b' 2>err || status=$?
    [ $status -eq 2 ] && grep -q "'a b'" err || fail "./run: exit $status, $(cat err)"
fi

# A long build counts on a terminal, and there only; what fails is told in full.
cat >counts <<'END'
set -euo pipefail
. "$VT_ROOT/tools/lib.sh"
counted log sh -c 'printf "[1/2] one\n[2/2] two\n"; exit '"$1"
END
export VT_ROOT
bash counts 0 2>err || fail "counted: $(cat err)"
[ ! -s err ] || fail "counted off a terminal: $(cat err)"
if bash counts 1 2>err; then fail "a failure is lost"; fi
grep -q '2/2. two' err || fail "counted: $(cat err)"
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
    script -qec 'bash counts 0' screen >/dev/null </dev/null || fail "counted: $(cat screen)"
    grep -aq '2/2. two' screen || fail "no count on a terminal: $(cat -v screen)"
    if script -qec 'bash counts 1' screen >/dev/null </dev/null; then fail "a failure is lost"; fi
fi
