"""What the how-to on bringing a simulator shows: its files by their paths, and its commands."""

from __future__ import annotations

import re
from pathlib import Path

_PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "bring-your-simulator.md"
_TEXT = _PAGE.read_text(encoding="utf-8")
_INSIDE = _PAGE.with_name("instrument-your-simulator.md").read_text(encoding="utf-8")
"""The how-to on measuring it from inside: its ``worker.py`` is a program too."""


def _files() -> dict[str, str]:
    """Each names itself in its first line, but the topology, whose first line is Hydra's."""
    files = {}
    for text in re.findall(r"```(?:yaml|python)\n(.*?)```", _TEXT, re.DOTALL):
        first = text.partition("\n")[0].removeprefix("# ")
        files["mysim/conf/topology/small.yaml" if first.startswith("@") else first] = text
    return files


FILES = _files()
SYNCHRONOUS = next(
    text
    for text in re.findall(r"```python\n(.*?)```", _INSIDE, re.DOTALL)
    if text.startswith("# worker.py")
)
COMMANDS = tuple(tuple(words.split()) for words in re.findall(r"^rolltop run (.+)$", _TEXT, re.M))


def write(folder: Path) -> Path:
    """Write the files below ``folder``, and return it."""
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder
