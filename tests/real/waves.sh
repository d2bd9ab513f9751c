# The loop of vLLM's own data-parallel ranks and the twin's: the same passes and dummies.
check waves --seeds 1..300
