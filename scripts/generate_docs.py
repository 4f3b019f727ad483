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


def main(arguments: list[str] | None = None) -> int:
    """Write the pages, or say which of them are not as the code has it."""
    from scripts.pages import BLOCKS

    parser = argparse.ArgumentParser(prog="python -m scripts.generate_docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    check = parser.parse_args(arguments).check

    unused = set(BLOCKS)
    stale = []
    for page in sorted(DOCS.rglob("*.md")):
        old = page.read_text(encoding="utf-8")
        unused -= set(names_in(old))
        new = fill(old, BLOCKS)
        if new != old:
            stale.append(str(page.relative_to(DOCS.parent)))
            if not check:
                page.write_text(new, encoding="utf-8")
    for name in sorted(unused):
        print(f"no page holds the generated block {name!r}", file=sys.stderr)
    for name in stale:
        print(f"{name}: {'not as the code has it' if check else 'written'}", file=sys.stderr)
    if check and stale:
        print("hint: make docs-reference", file=sys.stderr)
    return int(bool(unused) or (check and bool(stale)))


if __name__ == "__main__":
    sys.exit(main())
