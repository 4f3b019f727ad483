"""Says what it should not, makes a file that all may read, and waits: ``talkative.py FOLDER``."""

import sys
import time
from pathlib import Path

(Path(sys.argv[1]) / "made").touch(0o666)
sys.stdout.write("DB_PASSWORD=hunter2hunter2\nup\n")
sys.stdout.flush()
time.sleep(600)
