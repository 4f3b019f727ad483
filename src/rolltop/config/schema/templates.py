"""The templates of a simulator's commands and environments: ``{port}``, ``{run_dir}`` and so on.

``{{name}}`` stands for a literal ``{name}``. Anything in braces that is not one identifier is left
alone, so that JSON can be passed as an argument.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from rolltop.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

EVERYWHERE: dict[str, str] = {
    "run_dir": "the run directory, absolute",
    "sim_dir": "the folder that the description lies in, absolute; in a package, its `conf/`",
    "run_uuid": "the run's uuid",
    "seed": "the run's seed",
    "nr_workers": "how many workers there are",
    "steps_per_rollout": "steps of a rollout that does not end early",
    "max_retries": "how often a failed rollout is tried again",
    "stagger": "seconds between the first rollouts' starts; 0 in this version: all start at once",
    "instance": "the name of the process, `renderer-3`",
    "device_socket": "the socket of an emulated device; empty on real ones",
    "endpoints_file": "JSON: service -> list of {instance, address, node, gpu, n_concurrent}",
    "rollouts_file": "JSON lines: rollout uuid, scene, seed, first_wave",
    "faults_file": "JSON of `sim.faults`, {} where there are none",
    "scheduler": "the scheduler's address, host:port",
}
OF_SERVICES: dict[str, str] = {
    "port": "the port to serve on",
    "metrics_port": "the port of the process's own page (needs `metrics: true`)",
    "gpu": "physical index of its GPU, or stand-in slot; empty for a CPU container",
    "n_concurrent": "rollouts that the instance takes at once",
    "cache_size": "by the knob `cache_size.<service>`; n_concurrent + 1 where it is not mapped",
}
OF_THE_SCHEDULER: dict[str, str] = {name: OF_SERVICES[name] for name in ("port", "metrics_port")}
OF_WORKERS: dict[str, str] = {
    "worker_id": "0, 1, ... nr_workers - 1",
    "metrics_port": "the port of the worker's page",
}

_TEMPLATE = re.compile(r"\{\{([A-Za-z_]\w*)\}\}|\{([A-Za-z_]\w*)\}")


def names_in(text: str) -> Iterator[str]:
    """Yield the names of the templates in ``text``, in their order."""
    for match in _TEMPLATE.finditer(text):
        if match[2] is not None:
            yield match[2]


def expand(text: str, values: Mapping[str, str]) -> str:
    """Return ``text`` with its templates replaced.

    Raises:
        KeyError: A template has no value; `check` has let it pass.
    """
    return _TEMPLATE.sub(lambda m: f"{{{m[1]}}}" if m[2] is None else values[m[2]], text)


def check(place: str, texts: Iterable[str], known: Iterable[str]) -> None:
    """Refuse templates that ``place`` cannot fill.

    Raises:
        ConfigError: With the nearest known one, and all of them as the hint.
    """
    names = sorted(known)
    for text in texts:
        for name in names_in(text):
            if name not in names:
                near = get_close_matches(name, names, n=1)
                also = f"; did you mean {{{near[0]}}}?" if near else ""
                listed = " ".join(f"{{{known_name}}}" for known_name in names)
                raise ConfigError(
                    f"{place}: unknown template {{{name}}}{also}", hint=f"there are: {listed}"
                )
