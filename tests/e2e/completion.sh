# The completion scripts load and offer what the tables hold.
good completion bash
cp out vtwin.bash
cat >try.bash <<'END'
set -eu
. ./vtwin.bash
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _vtwin; echo "${COMPREPLY[*]}"; }
[ "$(try vtwin sim)" = simulate ]
[ "$(try vtwin simulate --arrivals '')" = "recorded closed session" ]
[ "$(try vtwin simulate --no-async)" = --no-async-scheduling ]
[ "$(try vtwin profile l)" = list ]
[ -z "$(try vtwin simulate --seed '')" ]
[ "$(try vtwin simulate --workload vtw)" = vtwin.bash ]
END
bash try.bash || fail "bash completion"
good completion zsh
cp out _vtwin
if command -v zsh >/dev/null; then
    zsh -n _vtwin || fail "zsh does not parse it"
    zsh -fc 'autoload -U compinit && compinit -u -d dump && source ./_vtwin && [[ ${_comps[vtwin]} = _vtwin ]]' ||
        fail "zsh does not load it"
fi
