# vLLM's own scheduler, in process, and the twin's on the same random configurations and
# traffic: every step must be the same. Longer ones: scheduler.py --minutes 60.
export PYTHONHASHSEED=0 # as the recordings have it
check scheduler --again "$VT_ROOT/tests/cases/scheduler/${VERSION%.0}"/*.json.gz
check scheduler --seeds 1..300 --keep . --shrink
