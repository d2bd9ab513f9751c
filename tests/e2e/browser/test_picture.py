"""The picture of README.md is what its command makes."""
import os
import pathlib
import subprocess
import sys
import tempfile

import browser

ROOT = pathlib.Path(os.environ.get("VT_ROOT", pathlib.Path(__file__).parents[3]))
VTWIN = os.environ.get("VTWIN", str(ROOT / "build/dev/vtwin"))

browser.need_browser()
with tempfile.TemporaryDirectory() as folder:
    made = pathlib.Path(folder) / "picture.svg"
    subprocess.run([sys.executable, ROOT / "tools/make_picture", VTWIN, made], check=True)
    if made.read_text() != (ROOT / "docs/picture.svg").read_text():
        sys.exit("docs/picture.svg is not what tools/make_picture makes: run it, and look at it")
