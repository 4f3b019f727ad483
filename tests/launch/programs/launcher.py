"""A launcher to be killed: ``launcher.py FOLDER GRACE PROGRAM...`` runs each, says ``up``, waits.

It writes the guard's pid to ``FOLDER/guard.pid``; on the end of a process it prints how it ended.
"""

import asyncio
import sys
from pathlib import Path

from rolltop.launch.supervisor import Supervisor
from rolltop.model.plan import ProcessPlan, Role


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def main(folder: Path, grace_s: float, programs: list[str]) -> None:
    async with Supervisor(folder, orphan_grace_s=grace_s) as supervisor:
        (folder / "guard.pid").write_text(str(supervisor.guard_pid))
        for i, program in enumerate(programs):
            name = f"{Path(program).stem}-{i}"
            argv = (sys.executable, "-S", *program.split(), str(folder))
            await supervisor.start(ProcessPlan(name, Role.WORKER, argv), folder / f"{name}.log")
        say("up")
        while True:
            ended = await supervisor.exits.get()
            say(f"{ended.name} {ended.describe()}")


asyncio.run(main(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]))
