# shellcheck shell=bash disable=SC2154
# Trials on a real Ray cluster of two nodes on this machine, from PyPI: the bytes of one
# process, while a worker, a node and at last the driver are killed.

# ---- the cluster -----------------------------------------------------------------
place=$VT_ROOT/build/real/ray
[ -x "$place/bin/ray" ] || {
    python3 -m venv "$place"
    "$place/bin/pip" install -q "ray==${RAY_VERSION:-2.60.0}"
}
mkdir -p wheel/vtwin # the driver alone: the rest of the wheel needs to be built
ln -sf "$VT_ROOT/python/vtwin/ray.py" wheel/vtwin/ray.py
export PATH=$place/bin:$PATH PYTHONPATH=$PWD/wheel RAY_AUTH_MODE=disabled
export RAY_raylet_start_wait_time_s=120 RAY_USAGE_STATS_ENABLED=0
port=$(ports 1)
small=(--num-cpus 1 --object-store-memory 100000000 --block)
start head ray start --head --port "$port" --include-dashboard=false "${small[@]}"
nodes() { # how many are alive
    python3 - "$port" <<'P'
import logging, ray, sys
ray.init(f"127.0.0.1:{sys.argv[1]}", logging_level=logging.ERROR, log_to_driver=False)
print(sum(n["Alive"] for n in ray.nodes()))
P
}
until_nodes() {
    for _ in $(seq 60); do
        [ "$(nodes 2>/dev/null || echo 0)" -ne "$1" ] || return 0
        sleep 1
    done
    fail "there are not $1 nodes"
}
until_nodes 1
start second ray start --address "127.0.0.1:$port" "${small[@]}"
second=$pid
until_nodes 2

# ---- what lies where a trial's files go ------------------------------------------------
python3 - "$port" <<'P' || fail "a node runs what somebody else may have put there"
import logging, os, ray, shutil, sys
import vtwin.ray as driver
ray.init(f"127.0.0.1:{sys.argv[1]}", logging_level=logging.ERROR, log_to_driver=False)
program = b"#!/bin/sh\necho vtwin: not a worker >&2\nexit 2\n"
task = ray.remote(num_cpus=1)(driver.trial)

def run(number):
    run = driver.Run(f"{os.getpid():x}{number:x}", [b"tune"], "/", {}, program, {})
    where = f"/tmp/vtwin-{os.getuid()}-{run.key}"
    return where, lambda: ray.get(task.remote([ray.put(run)], run.key, [], 0, 0, 1))[0]

where, ask = run(1)
assert ask() == b"\2not a worker", ask()
shutil.rmtree(where)
for number, put in enumerate((lambda at: os.makedirs(at) or os.chmod(at, 0o777),
                              lambda at: os.symlink("/etc", at)), 2):
    where, ask = run(number)
    put(where)
    try:
        sys.exit(f"it was run: {ask()}")
    except ray.exceptions.RayTaskError as error:
        assert "is somebody else's" in str(error).splitlines()[-1], error
    (os.remove if os.path.islink(where) else shutil.rmtree)(where)
P

# ---- the same bytes -----------------------------------------------------------------
ray=(--workers "ray:127.0.0.1:$port")
cat >load.yaml <<'Y'
requests: 400
arrival: {process: poisson, rate: 8}
prompt: 300
output: 100
Y
search=(tune --max-num-seqs "4,8,16,32" --max-num-batched-tokens "512,1024,2048" --workload load.yaml
    --objective capacity --once --json --seeds 1)
same() { # NAME COMMAND...: with Ray and without; its words in NAME.err
    local name=$1
    shift
    "$VTWIN" "$@" --quiet >"$name.one" || fail "$name: exit $?"
    "$VTWIN" "$@" "${ray[@]}" >"$name.ray" 2>"$name.err" || fail "$name: exit $?: $(cat "$name.err")"
    cmp "$name.one" "$name.ray" || fail "$name: Ray has another answer"
    cat "$name.err"
}
# On a busy machine one node may be done before the other has started its first worker,
# which is there the next time.
for _ in 1 2 3 4 5; do
    same tune "${search[@]}"
    [ "$(grep -c 'trials\?, .* s of work' tune.err)" -ne 2 ] || break
done
grep -q 'Ray 2.*: 2 nodes, 2 processors' tune.err || fail "what is there is not told"
[ "$(grep -c 'trials\?, .* s of work' tune.err)" -eq 2 ] || fail "not both nodes worked"
same smart "${search[@]}" --search smart
same capacity capacity --workload "$PWD/load.yaml" --once --seeds 2
same plan tune --plan tuning-plan.yaml --num-prompts 50 --rates 1,2 --seeds 1
validate=(validate --data-dir "$VT_ROOT/tests/cases/validate/truth" --adapters vtwin-step --quiet)
"$VTWIN" "${validate[@]}" --output-dir one >one.out
"$VTWIN" "${validate[@]}" --output-dir two "${ray[@]}" >two.out
cmp one/error_records.csv two/error_records.csv || fail "validate: Ray has other errors"
status=0
"$VTWIN" tune --workload nowhere.yaml "${ray[@]}" 2>err || status=$?
[ $status -eq 2 ] || fail "exit $status, not 2: $(cat err)"

# ---- what is killed ---------------------------------------------------------------------
# Long enough to be found at work: some seconds on each node.
long=("${search[@]}" --num-prompts 600 --workload multiturn-starters)
"$VTWIN" "${long[@]}" --quiet >long.one
at_work() { # a `vtwin worker` that has computed for a while, in $victim
    victim=
    for _ in $(seq 1200); do
        for victim in $(pgrep -f 'vtwin-[0-9]*-[0-9a-f]*/program worker'); do
            # shellcheck disable=SC2312
            if [ "$(cut -d ' ' -f 14 "/proc/$victim/stat" 2>/dev/null || echo 0)" -ge "${2:-5}" ] &&
                { [ -z "${1-}" ] || grep -q "^$victim$" <<<"$(family "$1")"; }; then
                return 0
            fi
        done
        sleep 0.05
    done
    fail "no worker is at work"
}
begin() {
    "$VTWIN" "${long[@]}" "${ray[@]}" >long.ray 2>long.err &
    run=$!
}
ends_well() {
    wait "$run" || fail "exit $?: $(cat long.err)"
    cmp long.one long.ray || fail "$1: another answer"
    echo "$1: the same bytes; $(tr '\n' ';' <long.err)"
}
begin
at_work
kill -9 "$victim"
ends_well "a worker was killed"
begin
at_work "$second"
mapfile -t all < <(family "$second")
kill -9 "${all[@]}"
ends_well "a node was killed"
unset "started[$second]"
until_nodes 1

begin
at_work
driver=$(pgrep -P "$run" -f vtwin.ray)
kill -9 "$driver"
status=0
wait "$run" || status=$?
[ $status -eq 3 ] || fail "exit $status, not 3, without its driver: $(cat long.err)"
[ ! -s long.ray ] || fail "a result although its driver was killed"
grep -q 'driver of the workers has ended: no result' long.err || fail "$(cat long.err)"

begin
at_work
kill -9 "$run"
wait "$run" && fail "killed, and well"
for _ in $(seq 100); do
    pgrep -f 'vtwin-[0-9]*-[0-9a-f]*/program worker' >/dev/null || break
    sleep 0.1
done
if pgrep -f 'vtwin-[0-9]*-[0-9a-f]*/program worker'; then
    fail "workers outlive their program"
fi

# ---- a cluster that was killed and left its address: it is not waited for ----------------
left=$(mktemp -d)
mkdir "$left/ray"
echo 192.0.2.1:6379 >"$left/ray/ray_current_cluster" # nobody has such an address
small=(tune --num-prompts 40 --once --seeds 1 --rates 1,20 --max-num-seqs "2,64" --json --quiet)
"$VTWIN" "${small[@]}" >left.one
RAY_TMPDIR=$left timeout 120 "$VTWIN" "${small[@]}" --workers ray >left.ray || fail "exit $? from a cluster of its own"
cmp left.one left.ray || fail "a cluster of its own has another answer"
rm -r "$left"
