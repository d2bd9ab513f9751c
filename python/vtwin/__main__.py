"""``python3 -m vtwin``: the program."""

import os
import sys

from vtwin._server import program

if __name__ == "__main__":
    os.execv(program(), ["vtwin", *sys.argv[1:]])  # noqa: S606
