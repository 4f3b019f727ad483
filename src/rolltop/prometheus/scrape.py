"""What a run's Prometheus scrapes, as text: ``prometheus.yml`` and file-SD targets. Pure.

Labels of a target (``job``, ``run_uuid`` ...) come from its file, never from the page: with
``honor_labels: false`` a page that says ``run_uuid`` of itself gets ``exported_run_uuid``, so that
no process can pass for another run's. All paths are relative to ``prometheus.yml``: the folder can
be moved and read again.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rolltop.catalogue.duration import duration
from rolltop.catalogue.panel import WORKER
from rolltop.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rolltop.model.target import TargetGroup

WORKER_FILE = "workers.json"
EXPORTER_FILE = "exporters.json"
TARGETS_FOLDER = "targets"
RULES_GLOB = "rules/*.yml"
NOTHING = "{}\n"
"""The ``prometheus.yml`` of a server that only reads what it has: no scrapes, no rules."""

_TIMEOUT_MAX_S = 10.0
_REFRESH_S = 30.0
"""Files are watched by inotify; where that does not work, they are read again this often."""
_TARGET = re.compile(r"(?:\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9](?:[A-Za-z0-9._-]*)):(?P<port>\d{1,5})")
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PORT_MAX = 65535


@dataclass(frozen=True)
class ScrapePool:
    """Targets that are scraped alike.

    Attributes:
        name: Its name among the pools; it is the ``job`` of a target that has none.
        targets_glob: The file-SD files, relative to ``prometheus.yml``.
        interval_s: Seconds between two scrapes of a target.
    """

    name: str
    targets_glob: str
    interval_s: float

    def render(self) -> dict[str, Any]:
        """Return its entry of ``scrape_configs``."""
        return {
            "job_name": self.name,
            "honor_labels": False,
            "scrape_interval": duration(self.interval_s),
            "scrape_timeout": duration(min(self.interval_s, _TIMEOUT_MAX_S)),
            "file_sd_configs": [
                {"files": [self.targets_glob], "refresh_interval": duration(_REFRESH_S)}
            ],
        }


def render_config(
    *,
    worker_interval_s: float = 1.0,
    exporter_interval_s: float = 5.0,
    rule_interval_s: float = 5.0,
    rules_glob: str = RULES_GLOB,
    targets_folder: str = TARGETS_FOLDER,
) -> str:
    """Return the ``prometheus.yml`` of a run.

    Args:
        worker_interval_s: Seconds between two scrapes of a runtime worker.
        exporter_interval_s: Seconds between two scrapes of anything else.
        rule_interval_s: Seconds between two evaluations of rules that say no other.
        rules_glob: The rule files, relative to ``prometheus.yml``.
        targets_folder: The folder of the file-SD files, relative to ``prometheus.yml``.

    Raises:
        ConfigError: An interval is shorter than a millisecond.
    """
    import yaml

    pools = (
        ScrapePool("workers", f"{targets_folder}/{WORKER_FILE}", worker_interval_s),
        ScrapePool("exporters", f"{targets_folder}/{EXPORTER_FILE}", exporter_interval_s),
    )
    config = {
        "global": {
            "scrape_interval": duration(exporter_interval_s),
            "scrape_timeout": duration(min(exporter_interval_s, _TIMEOUT_MAX_S)),
            "evaluation_interval": duration(rule_interval_s),
        },
        "rule_files": [rules_glob],
        "scrape_configs": [pool.render() for pool in pools],
    }
    return yaml.safe_dump(config, sort_keys=False)


def render_targets(groups: Sequence[TargetGroup]) -> str:
    """Return a file-SD file; groups without a target are left out.

    Raises:
        ConfigError: A target is no ``host:port``, or a label cannot be one.
    """
    for group in groups:
        _require_valid(group)
    entries = [
        {"targets": list(group.targets), "labels": dict(group.labels)}
        for group in groups
        if group.targets
    ]
    return json.dumps(entries, indent=2) + "\n"


def target_files(groups: Sequence[TargetGroup]) -> dict[str, str]:
    """Return file name -> text of the targets folder: runtime workers apart from all others.

    Both files are always there, so that one that is filled later is found at once.

    Raises:
        ConfigError: A target is no ``host:port``, or a label cannot be one.
    """
    workers = [group for group in groups if group.labels.get("job") == WORKER.job]
    others = [group for group in groups if group.labels.get("job") != WORKER.job]
    return {WORKER_FILE: render_targets(workers), EXPORTER_FILE: render_targets(others)}


def _require_valid(group: TargetGroup) -> None:
    for target in group.targets:
        found = _TARGET.fullmatch(target)
        if found is None or not 0 < int(found["port"]) <= _PORT_MAX:
            raise ConfigError(f"{target!r} cannot be scraped", hint="a target is host:port")
    for name, value in group.labels.items():
        if not _LABEL.fullmatch(name):
            raise ConfigError(f"{name!r} cannot be a label", hint="letters, digits and _ only")
        if not isinstance(value, str):
            raise ConfigError(f"label {name} is {value!r}", hint="a label is a text")
