"""A process that is never the same for long: ``runaway.py FOLDER [setsid]`` forks and leaves."""

import os
import signal
import sys

signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.stdout.write("up\n")
sys.stdout.flush()
while True:
    if os.fork():
        os._exit(0)
    if "setsid" in sys.argv:
        os.setsid()
