#!/usr/bin/env bash
# vtwin explore: its API gives what the commands print, hostile peers get nothing, and what nobody
# waits for ends.
set -euo pipefail
exec python3 "$VT_ROOT/tests/e2e/explore_api.py"
