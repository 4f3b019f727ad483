"""The files of the repository, as git or the disk has them."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHIPPED = ("src", "packages/instrument/src", "packages/refsim/src", "examples/tiny/src")
GENERATED = re.compile(r"_pb2(_grpc)?\.pyi?$")

_NEVER = {".venv", ".git", "__pycache__", "runs", "data", "dist", "build", "_build"}


@cache
def files() -> tuple[Path, ...]:
    """Return every file that is or would be committed; an unpacked archive has no git."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 0:
        found = [ROOT / name for name in listed.stdout.splitlines()]
    else:
        found = [p for p in ROOT.rglob("*") if not _NEVER & set(p.relative_to(ROOT).parts)]
    return tuple(path for path in found if path.is_file() and not path.is_symlink())


def python_files(*folders: str) -> list[Path]:
    """Return the hand-written modules below some folders, all of them without any."""
    roots = [ROOT / folder for folder in folders] or [ROOT]
    return [
        path
        for path in files()
        if path.suffix == ".py"
        and not GENERATED.search(path.name)
        and any(path.is_relative_to(root) for root in roots)
    ]


def pages() -> list[Path]:
    """Return every page in Markdown."""
    return [path for path in files() if path.suffix == ".md"]


def name(path: Path) -> str:
    """Return a path as a person would write it."""
    return str(path.relative_to(ROOT))


def shell_lines(text: str) -> list[str]:
    """Return the commands in a page's shell blocks, continued lines joined, without comments."""
    lines = []
    for block in re.findall(r"^```shell\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        for line in block.replace("\\\n", " ").splitlines():
            command = re.sub(r"(^|\s)#.*", "", line).strip()
            if command:
                lines.append(command)
    return lines
