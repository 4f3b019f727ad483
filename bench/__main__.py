"""``python -m bench [NAME...]``: measure, print one JSON object a line, write ``bench.json``.

Exits with 1 if a bound does not hold. NAME is a module of the table, or a bench that it measures.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path

from bench.rows import BenchRow

MODULES: dict[str, tuple[str, ...]] = {
    "instrument_rpc": ("rpc_recording", "rpc_interceptor"),
    "instrument_page": ("worker_page_lag",),
    "run_overhead": ("telemetry_cpu_ratio", "end_of_run_cpu"),
}
"""Modules with a function ``run() -> list[BenchRow]``, and the benches that each measures."""


def modules_of(wanted: list[str]) -> list[str]:
    """The modules that measure the wanted benches; all of them if none is named."""
    if not wanted:
        return list(MODULES)
    found = [
        module
        for module, benches in MODULES.items()
        if module in wanted or not set(benches).isdisjoint(wanted)
    ]
    known = {name for module, benches in MODULES.items() for name in (module, *benches)}
    unknown = sorted(set(wanted) - known)
    if unknown:
        raise SystemExit(f"unknown bench: {', '.join(unknown)}; known: {', '.join(sorted(known))}")
    return found


def main() -> int:
    """Run the benches."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # as installed: compiled once
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="all by default")
    rows: list[BenchRow] = []
    for module in modules_of(parser.parse_args().names):
        for row in importlib.import_module(f"bench.{module}").run():
            print(row.to_json(), flush=True)
            rows.append(row)
    lines = "".join(f"{row.to_json()}\n" for row in rows)
    (Path(__file__).parents[1] / "bench.json").write_text(lines, encoding="utf-8")
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
