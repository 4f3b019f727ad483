"""Markdown in the small."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def code(text: str) -> str:
    """Return inline code, "" for nothing."""
    return f"`{text}`" if text else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; a bar in a cell is escaped, a line break becomes a space."""
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    lines += ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


def sentence(text: str) -> str:
    """Return the first paragraph of a docstring on one line, double backticks as single ones."""
    first, _, _ = text.strip().partition("\n\n")
    return " ".join(first.split()).replace("``", "`")
