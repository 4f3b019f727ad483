"""Everything that a run needs before a process is started: identity, ports, plan, directory."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rolltop.files import replace_file
from rolltop.launch.plan import plan, ports_needed
from rolltop.launch.plan_text import render_plan
from rolltop.launch.ports import PortLeases
from rolltop.lifecycle.directory import new_run_directory, render_metadata
from rolltop.lifecycle.events import utc_now
from rolltop.model.redact import redact_argv
from rolltop.model.run import RunIdentity, RunPaths

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rolltop.config import RunConfig
    from rolltop.model.plan import LaunchPlan, ProcessPlan


@dataclass
class PreparedRun:
    """A run that could start now. ``plan`` changes when a port has to be replaced."""

    config: RunConfig
    identity: RunIdentity
    paths: RunPaths
    leases: PortLeases
    ports: list[int]
    plan: LaunchPlan

    def replace_port(self, process: ProcessPlan) -> ProcessPlan:
        """Give a process that could not bind another port; return its new plan.

        Raises:
            PortError: there is no other free port.
        """
        if process.port is not None:
            self._replace(process.port)
        return next(p for p in self.plan.processes if p.name == process.name)

    def replace_prometheus_port(self) -> None:
        """Give Prometheus another port.

        Raises:
            PortError: there is no other free port.
        """
        if self.plan.prometheus_port is not None:
            self._replace(self.plan.prometheus_port)

    def _replace(self, port: int) -> None:
        self.ports[self.ports.index(port)] = self.leases.replace(port)
        self.plan = plan(
            self.config,
            identity=self.identity,
            paths=self.paths,
            ports=self.ports,
            node=node_name(),
        )


def new_identity(config: RunConfig, command: Sequence[str]) -> RunIdentity:
    """Return who this run is; ``command`` is redacted."""
    return RunIdentity(
        run_uuid=config.run.uuid,
        run_name=config.run.name,
        user=user_name(),
        started=utc_now(),
        command=redact_argv(command),
        slurm_job_id=os.environ.get("SLURM_JOB_ID", ""),
        git_commit=git_commit(),
    )


def prepare(config: RunConfig, command: Sequence[str], *, cwd: Path) -> PreparedRun:
    """Lease the ports and make the plan; nothing is written yet.

    Raises:
        PortError: there are not enough free ports in ``ports.range``.
    """
    identity = new_identity(config, command)
    paths = RunPaths(cwd / config.run.dir)
    leases = PortLeases(config.ports.allowed())
    ports = leases.lease(ports_needed(config))
    launch = plan(config, identity=identity, paths=paths, ports=ports, node=node_name())
    return PreparedRun(config, identity, paths, leases, ports, launch)


def write_run_files(run: PreparedRun) -> None:
    """Make the run directory with its configuration, metadata and the plan's files.

    Where that fails or is interrupted, all that was made is removed again.

    Raises:
        ConfigError: the directory cannot be used, or a file could not be written.
    """
    with new_run_directory(run.paths.run_dir) as paths:
        replace_file(paths.config, run.config.redacted_yaml())
        replace_file(paths.metadata, render_metadata(run.identity, paths.run_dir))
        write_plan(run)


def write_plan(run: PreparedRun) -> None:
    """Write ``plan.json`` and the files that the processes read."""
    replace_file(run.paths.plan, render_plan(run.plan))
    for name, text in run.plan.files.items():
        replace_file(run.paths.run_dir / name, text)


def user_name() -> str:
    """Return the user's name, or the uid where it has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def node_name() -> str:
    """Return this node's name as in labels."""
    return os.uname().nodename


def git_commit() -> str | None:
    """Return the commit of the checkout that the run is started in, None where there is none."""
    git = shutil.which("git")
    if git is None:
        return None
    try:
        done = subprocess.run(
            [git, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
