# tools/new_line on two made-up releases: what was added, moved, dropped and changed is named,
# what only reads differently is not.
tree() { # VERSION
    mkdir -p "$1/vllm/v1/engine" "$1/vllm/v1/metrics" "$1/vllm/v1/core/sched"
    cat >"$1/vllm/v1/engine/__init__.py"
}

tree 0.40.0 <<'PY'
class EngineCoreRequest:
    request_id: str
    prompt_token_ids: list[int]
class EngineCoreOutput:
    request_id: str
    prefill_stats: int = 0
PY
tree 0.41.0 <<'PY'
class EngineCoreRequest:
    request_id: str
    prompt_token_ids: list[int]
    hints: dict | None = None  # new
class EngineCoreOutput:
    request_id: str
    stop: int = 0
    prefill_stats: int = 0
PY
cat >0.40.0/vllm/v1/metrics/stats.py <<'PY'
class Base:
    reset: bool = False
class PrefixCacheStats(Base):
    hits: int = 0
    old: int = 0
PY
cat >0.41.0/vllm/v1/metrics/stats.py <<'PY'
class Base:
    reset: bool = False
class PrefixCacheStats(Base):
    hits: int = 0
PY
cat >0.40.0/vllm/v1/core/sched/scheduler.py <<'PY'
class Scheduler:
    def schedule(self):
        "Plans."
        return 1
    def update(self):
        return 2
PY
cat >0.41.0/vllm/v1/core/sched/scheduler.py <<'PY'
class Scheduler:
    def schedule(self):
        "Plans a step."
        return 1  # as before
    def update(self):
        return 3
PY
"$VT_ROOT/tools/new_line" --diff 0.41.0 0.40.0 >said
for line in 'EngineCoreRequest +3, was 2 ' '\+ hints, number 3, the last' '\+ stop, number 2$' \
    'PrefixCacheStats +2, was 3 ' '- old, was number 3' '~ Scheduler\.update$' '-    return 2$' \
    '1\. .*\{"0\.41", 41, 3, 3, 0, 2, \.past = false\}' \
    '5\. .*\[\[vllm\]\] 0\.41; 0\.29, 0\.30, 0\.31 leave the window'; do
    grep -Eq -- "$line" said || fail "no line '$line' in: $(cat said)"
done
! grep -q 'Scheduler\.schedule' said || fail "a comment counts as a change: $(cat said)"

"$VT_ROOT/tools/new_line" 0.41.0 nowhere 2>said && fail "there is no such directory"
grep -q 'nowhere is neither a version' said || fail "$(cat said)"
