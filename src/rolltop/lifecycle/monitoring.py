"""The run's own Prometheus: started first, started again if it dies, stopped last.

Telemetry is a guest: whatever goes wrong here is one warning and an entry in ``missing``, and
nothing here keeps the run waiting: a Prometheus that does not answer is asked no more, and one
that died is started again beside the run.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from rolltop.catalogue import questions
from rolltop.catalogue.aliases import canonical_service
from rolltop.catalogue.rules import render_rules
from rolltop.errors import DependencyError, LaunchError, RolltopError, error_text
from rolltop.files import replace_file
from rolltop.model.plan import HealthCheck, HealthKind, ProcessPlan, Role
from rolltop.prometheus.binary import find_prometheus
from rolltop.prometheus.database import has_samples
from rolltop.prometheus.file_sd import write_targets
from rolltop.prometheus.query import Prometheus
from rolltop.prometheus.scrape import render_config

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rolltop.launch.diagnosis import ProcessExit
    from rolltop.launch.supervisor import Supervisor
    from rolltop.lifecycle.events import EventLog
    from rolltop.lifecycle.prepare import PreparedRun
    from rolltop.model.series import Series
    from rolltop.prometheus.binary import Binary

NAME = "prometheus"
_RESTARTS_MAX = 3
_START_TIMEOUT_S = 30.0
_BUSIEST_EVERY_S = 5.0
_ASK_TIMEOUT_S = 1.0
_PORTS_TRIED = 3
_DISCOVERY_TIMEOUT_S = 8.0
"""A Prometheus looks for targets every 5 s, so that its first scrape is 5-6 s after its start."""
_DISCOVERY_EVERY_S = 0.25

_FRUGAL = {"GOMAXPROCS": "1", "GOGC": "400"}
"""A guest on the run's node: one thread at work, and memory (tens of MB) for less collection."""


class RunPrometheus:
    """Owns the Prometheus of one run; ``missing`` says what of the telemetry is not there."""

    def __init__(
        self,
        run: PreparedRun,
        supervisor: Supervisor,
        *,
        events: EventLog,
        note: Callable[[str], None],
    ) -> None:
        self._run = run
        self._supervisor = supervisor
        self._events = events
        self._note = note
        self._restarts = 0
        self._binary: Binary | None = None
        self._plan: ProcessPlan | None = None
        self._ready_pid: int | None = None
        self._restart: asyncio.Task[None] | None = None
        self._last = False
        self.busiest: tuple[str, float] | None = None
        """The busiest service and its calls in flight, None where nothing is known."""
        self.missing: dict[str, str] = {}

    @property
    def up(self) -> bool:
        """Whether it runs, as far as is known."""
        return NAME in self._supervisor.running

    @property
    def version(self) -> str | None:
        """Its version, None where there is none."""
        return str(self._binary.version) if self._binary else None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._run.plan.prometheus_port}"

    def _asking(self) -> Prometheus:
        """Return what answers a quick question while the run goes on."""
        return Prometheus(self.url, timeout_s=_ASK_TIMEOUT_S)

    async def start(self) -> None:
        """Write its files and start it; on failure the run goes on without."""
        telemetry = self._run.config.telemetry
        if not telemetry.enabled:
            self.missing[NAME] = "telemetry.enabled=false"
            return
        try:
            self._binary = await asyncio.to_thread(find_prometheus)
            self._write_files()
            await self._launch()
        except DependencyError as error:
            self._without(f"{error.message}; {error.hint}" if error.hint else error.message)
        except (RolltopError, OSError) as error:
            self._without(error_text(error))

    def _without(self, reason: str) -> None:
        self.name_missing(reason)
        self._note(f"warning: the run goes on without telemetry: {reason}")

    def name_missing(self, reason: str) -> None:
        """Say in ``missing`` and among the events that what it measured is not there."""
        self.missing[NAME] = reason
        self._events.append("telemetry_missing", what=NAME, reason=reason)

    def _write_files(self) -> None:
        run, telemetry = self._run, self._run.config.telemetry
        replace_file(
            run.paths.prometheus_config,
            render_config(
                worker_interval_s=telemetry.worker_interval_s,
                exporter_interval_s=telemetry.exporter_interval_s,
                rule_interval_s=telemetry.rule_interval_s,
            ),
        )
        replace_file(
            run.paths.rules / "rolltop.yml",
            render_rules(
                interval_s=telemetry.rule_interval_s,
                fast_interval_s=telemetry.worker_interval_s,
            ),
        )
        write_targets(run.paths.targets, run.plan.targets)

    async def _launch(self) -> None:
        for attempt in range(_PORTS_TRIED):
            plan = self._process()
            pid = await self._supervisor.start(plan, self._run.paths.log_of(NAME))
            try:
                await self._supervisor.wait_healthy(NAME)
            except LaunchError as error:
                if not getattr(error, "port_taken", False) or attempt == _PORTS_TRIED - 1:
                    await self._supervisor.stop([NAME])
                    raise
                self._run.replace_prometheus_port()
                continue
            self._ready_pid = pid
            self._events.append("process_ready", process=NAME, port=plan.port)
            return

    def _process(self) -> ProcessPlan:
        assert self._binary is not None  # noqa: S101 (start() found it)
        port = self._run.plan.prometheus_port
        assert port is not None  # noqa: S101 (telemetry is enabled)
        paths = self._run.paths
        # Files beside the configuration are found by patterns, in which a run's own path would be
        # one too: it is left out, since processes run in the run directory.
        config = paths.prometheus_config.relative_to(paths.run_dir)
        return ProcessPlan(
            name=NAME,
            role=Role.PROMETHEUS,
            argv=self._binary.command(config=config, data=paths.data, port=port),
            env=_FRUGAL,
            port=port,
            health=HealthCheck(HealthKind.HTTP, "/-/ready", _START_TIMEOUT_S),
        )

    async def discovered(self) -> None:
        """Return once it knows the run's targets, so that a short run is seen from its start."""
        until_s = time.monotonic() + _DISCOVERY_TIMEOUT_S
        wanted = sum(len(group.targets) for group in self._run.plan.targets)
        while (self.up or self._restarting) and time.monotonic() < until_s:
            if await asyncio.to_thread(self._count_targets) >= wanted:
                return
            await asyncio.sleep(_DISCOVERY_EVERY_S)

    def _count_targets(self) -> int:
        try:
            with self._asking() as client:
                return len(client.targets())
        except RolltopError:
            return 0

    # -- when it dies -------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether it runs and is not on its way there."""
        return self.up and not self._restarting

    @property
    def _restarting(self) -> bool:
        return self._restart is not None and not self._restart.done()

    def on_exit(self, ended: ProcessExit) -> None:
        """Note that it died, and start it again beside the run, a few times.

        What it missed is a gap. While it is being started its exit is the business of that start.
        """
        if ended.pid is None or ended.pid != self._ready_pid:
            return
        reason = ended.describe()
        self._events.append("process_ended", process=NAME, reason=reason)
        if self._last:
            self.name_missing(f"Prometheus {reason} before its data were read")
            self._note(f"warning: {self.missing[NAME]}")
            return
        if self._restarts >= _RESTARTS_MAX:
            self._without(f"Prometheus {reason}, {_RESTARTS_MAX} times")
            return
        self._restarts += 1
        self._note(f"warning: Prometheus {reason}: started again, the telemetry has a gap")
        self._restart = asyncio.create_task(self._start_again(reason))

    async def _start_again(self, reason: str) -> None:
        try:
            await self._supervisor.stop([NAME])  # until nothing of it is left
            await self._launch()
        except (RolltopError, OSError) as error:
            self._without(f"Prometheus {reason} and does not start again: {error_text(error)}")

    async def begin_reading(self) -> None:
        """Return once it can be read for the report; from then on it is not started again."""
        try:
            if self._restart is not None:
                await asyncio.wait({self._restart})
        finally:
            self.start_no_more()

    def start_no_more(self) -> None:
        """From now on it is not started again if it dies."""
        self._last = True

    @property
    def left_data(self) -> bool:
        """Whether there are samples on the disk that can be read.

        Not while it is being started on it: that takes too long already, and would again.
        """
        found = self._binary is not None and has_samples(self._run.paths.data)
        return found and not self._restarting

    async def close(self) -> None:
        """Stop it, so that its data are whole."""
        self.start_no_more()
        if self._restart is not None:
            self._restart.cancel()
            await asyncio.gather(self._restart, return_exceptions=True)
        await self._supervisor.stop([NAME])

    # -- while the run goes on ----------------------------------------------------------------

    async def keep_asking(self) -> None:
        """Ask again and again, for as long as this is awaited, which service is the busiest."""
        while True:
            self.busiest = await asyncio.to_thread(self._ask_busiest) if self.up else None
            await asyncio.sleep(_BUSIEST_EVERY_S)

    def _ask_busiest(self) -> tuple[str, float] | None:
        """Ask whose instances serve most; where none says so, which is called most."""
        uuid = self._run.identity.run_uuid
        try:
            with self._asking() as client:
                queues = _by_service(client.query(questions.queues(uuid)))
                busy = _by_service(client.query(questions.busy(uuid)))
        except RolltopError:
            return None
        ranked = {name: busy[name] for name in queues if busy.get(name)} or queues
        if not ranked or max(ranked.values()) <= 0:
            return None
        name = max(ranked, key=lambda service: ranked[service])
        return canonical_service(name), queues[name]


def _by_service(found: Sequence[Series]) -> dict[str, float]:
    return {s.labels.get("service", ""): float(s.values[-1]) for s in found if s.values.size}
