"""Fill the generated blocks of the documentation from the code that they describe.

A page holds ``<!-- generated: NAME -->`` and ``<!-- end of NAME -->``; what stands between them is
written here, the rest by hand. ``--check`` writes nothing and fails where a page differs.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DOCS = Path(__file__).parents[1] / "docs"

_BLOCK = re.compile(
    r"(?P<head><!-- generated: (?P<name>[a-z-]+) -->\n).*?(?P<tail><!-- end of (?P=name) -->)",
    re.DOTALL,
)


def fill(text: str, blocks: Mapping[str, Callable[[], str]]) -> str:
    """Return a page with every generated block written anew.

    Raises:
        KeyError: the page asks for a block that nobody writes.
    """

    def written(match: re.Match[str]) -> str:
        return f"{match['head']}\n{blocks[match['name']]().strip()}\n\n{match['tail']}"

    return _BLOCK.sub(written, text)


def names_in(text: str) -> list[str]:
    """Return the names of a page's blocks."""
    return [match["name"] for match in _BLOCK.finditer(text)]


def generated(pages: Mapping[Path, str]) -> dict[Path, str]:
    """Return every page as the code has it.

    Raises:
        ValueError: no page holds a block that is written.
    """
    from scripts.pages import BLOCKS

    unused = BLOCKS.keys() - {name for text in pages.values() for name in names_in(text)}
    if unused:
        msg = f"no page holds the generated blocks {', '.join(sorted(unused))}"
        raise ValueError(msg)
    return {page: fill(text, BLOCKS) for page, text in pages.items()}


def main(arguments: list[str] | None = None) -> int:
    """Write what differs, or only name it and fail."""
    parser = argparse.ArgumentParser(prog="python -m scripts.generate_docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    check = parser.parse_args(arguments).check

    pages = {page: page.read_text(encoding="utf-8") for page in sorted(DOCS.rglob("*.md"))}
    stale = {page: text for page, text in generated(pages).items() if text != pages[page]}
    for page, text in stale.items():
        shown = page.relative_to(DOCS.parent)
        print(f"{shown}: {'not as the code has it' if check else 'written'}", file=sys.stderr)
        if not check:
            page.write_text(text, encoding="utf-8")
    if check and stale:
        print("hint: make docs-reference", file=sys.stderr)
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
