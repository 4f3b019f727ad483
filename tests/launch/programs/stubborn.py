"""A process that is hard to end: ``stubborn.py [bare] FOLDER``; it says ``up`` when all is there.

It has a child in its session, a grandchild in a session of its own, and an orphan in one of its
own, with an empty environment if ``bare``. All of them ignore SIGTERM.
"""

import os
import signal
import sys
import time


def sleep_on() -> None:
    while True:
        time.sleep(1)


signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
up, tell = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        os.write(tell, b"1")
        sleep_on()
    os.write(tell, b"1")
    sleep_on()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.set_inheritable(tell, True)
        code = f"import os, time; os.write({tell}, b'1'); time.sleep(600)"
        env = {} if "bare" in sys.argv else dict(os.environ)
        os.execve(sys.executable, [sys.executable, "-S", "-c", code, *sys.argv[1:]], env)  # noqa: S606
    os._exit(0)
os.wait()
for _ in range(3):
    os.read(up, 1)
sys.stdout.write("up\n")
sys.stdout.flush()
sleep_on()
