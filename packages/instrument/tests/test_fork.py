"""A forked child has copies of locks that nobody releases, and of the parent's page."""

from __future__ import annotations

import gc
import subprocess
import sys
from weakref import ref

from rolltop_instrument import WorkerTelemetry, _fork

FORK = """
import asyncio, os, signal, threading, traceback, urllib.request
from rolltop_instrument import WorkerTelemetry

def use(telemetry):
    with telemetry.step():
        pass
    telemetry.rollout_abandoned()
    telemetry.set_job_queue_depth(1)
    telemetry.batch_size("renderer", 2)

async def call(telemetry):
    async with telemetry.call("driver", "drive"):
        pass
    await telemetry.retry("driver", lambda: asyncio.sleep(0))

async def main():
    async with WorkerTelemetry(port=0) as telemetry:
        book, registry = telemetry._book, telemetry._registry
        use(telemetry)
        site = book.site("renderer", "render", "renderer-0")
        site.begin()
        site.end(0.1)
        locks = telemetry._lock, book._adding_up, book._creating, registry._refreshing
        held, release = threading.Event(), threading.Event()

        def hold():
            for lock in locks:
                lock.acquire()
            held.set()
            release.wait()
            for lock in locks:
                lock.release()

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        status = await asyncio.to_thread(fork, telemetry, site, telemetry._page)
        assert status == 0, status
        release.set()
        thread.join()
        url = f"http://127.0.0.1:{telemetry.page_port}/metrics"
        read = lambda: urllib.request.urlopen(url, timeout=10).read().decode()
        page = await asyncio.to_thread(read)
        assert 'service="renderer",endpoint="renderer-0"} 1\\n' in page
        assert 'rolltop_rollouts_abandoned_total{worker_id="0"} 1\\n' in page
        assert 'alpasim_step_duration_seconds_count{worker_id="0"} 1\\n' in page

def fork(telemetry, site, page):
    child = os.fork()  # from a thread that has no loop
    if child:
        return os.waitpid(child, 0)[1]
    try:
        signal.alarm(20)
        in_child(telemetry, site, page)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)

def in_child(telemetry, site, page):
    assert page._server.fileno() == -1  # else the port outlives the parent
    assert telemetry._lock.acquire(blocking=False)
    use(telemetry)
    asyncio.run(call(telemetry))
    for _ in range(1000):
        site.begin()
        site.end(0.1)
    assert len(telemetry._book.notes) < 256
    assert telemetry.render() == ""
    assert telemetry.page_port is None
    assert not telemetry.enabled

    async def own():
        await telemetry.__aexit__(None, None, None)
        async with telemetry:  # one line in the log
            assert telemetry.page_port is None
        async with WorkerTelemetry(port=0) as mine:
            use(mine)
            assert 'rolltop_rollouts_abandoned_total{worker_id="0"} 1' in mine.render()
            assert mine.page_port

    asyncio.run(own())

asyncio.run(main())
"""


def test_a_forked_childs_telemetry_is_off_and_the_parents_goes_on() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("made before this process was forked") == 1


def test_what_is_to_be_done_after_a_fork_keeps_nothing_alive() -> None:
    telemetry: WorkerTelemetry | None = WorkerTelemetry()
    assert telemetry is not None
    reference = ref(telemetry)
    assert reference in _fork._OWNERS
    telemetry = None
    gc.collect()
    assert reference() is None
    assert not [each for each in list(_fork._OWNERS) if each() is None]
