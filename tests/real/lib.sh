# shellcheck shell=bash disable=SC2034
# lib.sh SCRIPT - runs one script of tests/real with these helpers, in the present
# directory. $VTWIN is the binary, $VT_ROOT the repository, $VERSION that of vLLM.
set -euo pipefail
tests=$VT_ROOT/tests/real
python=$VT_ROOT/build/real/$VERSION/bin/python
model=$VT_ROOT/tests/cases/tiny-qwen3

# Nothing is asked of the network, and one thread is enough for a model this small.
export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1
export OMP_NUM_THREADS=1 VLLM_CPU_OMP_THREADS_BIND=nobind VLLM_CPU_KVCACHE_SPACE=1
export VLLM_SERVER_DEV_MODE=1 # routes to pause, sleep and reset
export PYTHONHASHSEED=7       # block hashes that can be computed again
export PYTHONDONTWRITEBYTECODE=1 no_proxy='*'

fail() {
    echo "FAIL: $*"
    exit 1
}

skip() {
    echo "$*"
    exit 77
}

# ---- processes --------------------------------------------------------

declare -A started=() # process id: name

# start NAME COMMAND...: in the background, its words in NAME.log, its id in $pid.
start() {
    local name=$1
    shift
    # --foreground: signals are passed on once, not to the whole group as well.
    timeout --foreground -k 10 1100 "$@" >"$name.log" 2>&1 &
    pid=$!
    started[$pid]=$name
}

# All processes below PID, itself first.
family() {
    local child
    echo "$1"
    for child in $(pgrep -P "$1"); do
        family "$child"
    done
}

# Whether one of these still runs; a zombie does not.
any_alive() {
    local p
    for p in "$@"; do
        case $(ps -o stat= -p "$p") in '' | Z*) ;; *) return 0 ;; esac
    done
    return 1
}

# stop PID [SIGNAL]: asks it to end, waits, and ends by force what is left of its family.
# Fails if force was needed; its exit code is $ended.
stop() {
    local all p forced=0 deadline=$((SECONDS + 60))
    mapfile -t all < <(family "$1")
    kill -"${2:-TERM}" "$1" 2>/dev/null || true
    while any_alive "${all[@]}" && [ $SECONDS -lt $deadline ]; do sleep 0.2; done
    for p in "${all[@]}"; do
        if any_alive "$p"; then
            kill -KILL "$p" 2>/dev/null || true
            forced=1
        fi
    done
    ended=0
    wait "$1" 2>/dev/null || ended=$?
    unset "started[$1]"
    return $forced
}

stop_all() {
    local p name
    for p in "${!started[@]}"; do
        name=${started[$p]}
        stop "$p" || echo "had to be killed: $name"
    done
}
trap stop_all EXIT

# ports N: so many that are free now, where neither the kernel nor other tests look for theirs.
ports() {
    python3 - "$1" <<'END'
import random, socket, sys
held = []
while len(held) < int(sys.argv[1]):
    s = socket.socket()
    try:
        s.bind(("127.0.0.1", random.randrange(5100, 9900)))
        held.append(s)
    except OSError:
        pass
print(*(s.getsockname()[1] for s in held))
END
}

# wait_for SECONDS WHAT COMMAND...: until it succeeds.
wait_for() {
    local deadline=$((SECONDS + $1)) what=$2 p
    shift 2
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $deadline ] || fail "no $what in time"
        for p in "${!started[@]}"; do
            any_alive "$p" || fail "${started[$p]} ended before: $(tail -n 5 "${started[$p]}.log")"
        done
        sleep 0.5
    done
}

# within ROOT COMMAND...: below another root, with processes of its own and nobody's environment.
within() {
    local place=$1
    shift
    unshare --mount --pid --fork --kill-child "--mount-proc=$place/proc" \
        env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive PYTHONDONTWRITEBYTECODE=1 chroot "$place" "$@"
}

# ---- vLLM and the twin ------------------------------------------------

# The engine of 0.32.0 computes only in float32 here (its bfloat16 needs AMX).
dtype=bfloat16
[ "$VERSION" = 0.26.0 ] || dtype=float32

# vllm ARGS: its command line, as an array for start.
vllm=("$python" -m vllm.entrypoints.cli.main)

read -r handshake tap http <<<"$(ports 3)"
url=http://127.0.0.1:$http

# python_frontend [ARGS]: an API server without an engine of its own.
python_frontend() {
    start frontend "${vllm[@]}" serve "$model" --served-model-name tiny --dtype $dtype \
        --max-model-len 2048 --data-parallel-size-local 0 \
        --data-parallel-address 127.0.0.1 --data-parallel-rpc-port "$handshake" \
        --host 127.0.0.1 --port "$http" "$@"
    frontend=$pid
}

# rust_frontend: vllm-rs instead, out of the wheel of the same version.
rust_frontend() {
    local program=$VT_ROOT/build/frontends/$VERSION/vllm-rs
    start frontend "$program" serve "$model" --served-model-name tiny --max-model-len 2048 \
        --data-parallel-size 1 --data-parallel-size-local 0 --handshake-port "$handshake" \
        --host 127.0.0.1 --port "$http"
    frontend=$pid
}

# engine PORT: a real one, without weights, that dials the handshake there.
engine() {
    local memory=()
    # What it may take of the machine's memory; only the KV cache counts, which is 1 GiB.
    [ "$VERSION" = 0.26.0 ] || memory=(--gpu-memory-utilization 0.3)
    start engine "${vllm[@]}" serve "$model" --headless --data-parallel-size 1 \
        --data-parallel-address 127.0.0.1 --data-parallel-rpc-port "$1" --load-format dummy \
        --dtype $dtype --max-model-len 2048 --block-size 32 --enforce-eager \
        ${memory[@]+"${memory[@]}"}
    engine=$pid
}

# record [ARGS]: the recorder, between the frontend and port $tap.
record() {
    start record "$VTWIN" record --frontend-handshake "tcp://127.0.0.1:$handshake" \
        --engine-handshake "tcp://127.0.0.1:$tap" --record-tokens --gpu CPU "$@"
    record=$pid
}

# play [ARGS]: the twin, behind the frontend, or behind whatever waits at port $to.
play() {
    start play "$VTWIN" play "$model" --handshake-address "tcp://127.0.0.1:${to:-$handshake}" \
        --max-model-len 2048 --dtype $dtype --block-hash-seed "$PYTHONHASHSEED" "$@"
    play=$pid
}

wait_until_up() {
    local begun=$SECONDS
    wait_for 400 "answer of the frontend" curl -sf -o /dev/null "$url/health"
    echo "frontend up after $((SECONDS - begun)) s"
}

# ends_well NAME PID: it ends when it is told to, without a complaint.
ends_well() {
    stop "$2" || fail "$1 did not end"
    [ "$ended" -eq 0 ] || fail "$1: exit $ended: $(tail -n 5 "$1.log")"
    tail -n 1 "$1.log"
}

both_end() {
    stop "$frontend" || fail "the frontend did not end"
    ends_well play "$play"
}

# check NAME ARGS: one of the Python programs beside this file.
check() {
    local name=$1
    shift
    VLLM_LOGGING_LEVEL=ERROR "$python" "$tests/$name.py" "$@" || fail "$name"
}

# shellcheck source=/dev/null
. "$1"
