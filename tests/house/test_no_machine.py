"""The project belongs to no machine: no hosts of indexes, no paths of somebody's disk."""

from __future__ import annotations

import re

import pytest

from scripts.repository import ROOT, files, name

# One letter of each in brackets, so that this file holds none of them.
FORBIDDEN = {
    "the host of a package index": r"[p]ypi\.org|[p]ythonhosted|[d]eb\.debian|[r]egistry\.npmjs",
    "the address of an index": r"--(extra-)?[i]ndex-url|--[f]ind-links",
    "somebody's home": r"/[h]ome/(?!somebody\b)[a-z]|(^|[\s\"'=:(])/[r]oot/",
    "a folder of one machine": r"(^|[^A-Za-z0-9_.-])/([w]ork|[f]arm|[c]eo)/",
}


@pytest.fixture(scope="module")
def texts():
    found = {}
    for path in files():
        try:
            found[name(path)] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
    return found


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_names(texts, what):
    pattern = re.compile(FORBIDDEN[what], re.MULTILINE)
    hits = {place: match[0] for place, text in texts.items() if (match := pattern.search(text))}
    assert hits == {}


def test_constraints_are_names_and_versions_only():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert pins
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9.!+]+", pin)] == []
