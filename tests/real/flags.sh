# shellcheck shell=bash disable=SC2154
# Every flag of this release's `vllm serve` is one that serve and play take.
"$VT_ROOT/tools/vllm_flags" "$python"
