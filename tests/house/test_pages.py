"""What the generated pages are made of."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from scripts.pages.markdown import sentence, table
from scripts.pages.schema import rows


class Leaf(BaseModel):
    ratio: float = Field(default=0.5, ge=0, le=1, description="A share.")
    kind: Literal["a", "b"] = "a"


class Root(BaseModel):
    name: str
    one: Leaf
    none_or_one: Leaf | None = None
    by_name: dict[Annotated[str, Field(pattern="^[a-z]+$")], Leaf] = {}
    several: list[Leaf] = []
    words: list[str] | None = None


def test_a_schema_is_its_leaves_by_their_paths():
    found = {row.path: (row.type, row.default) for row in rows(Root.model_json_schema())}
    assert found["name"] == ("string", "required")
    assert found["words"] == ("list of string or null", "null")
    for place in ("one", "none_or_one", "by_name.<name>", "several[]"):
        assert found[f"{place}.ratio"] == ("number >= 0, <= 1", "0.5")
        assert found[f"{place}.kind"] == ("a, b", '"a"')
    assert len(found) == 2 + 4 * 2


def test_a_leaf_has_its_meaning():
    assert rows(Leaf.model_json_schema(), "x")[0].meaning == "A share."
    assert rows(Leaf.model_json_schema(), "x")[0].path == "x.ratio"


def test_a_cell_stays_one_cell():
    assert table(("a",), [("x | y\nz",)]).splitlines()[-1] == r"| x \| y z |"


def test_a_docstring_is_its_first_paragraph():
    assert sentence("One ``thing``\n  on two lines.\n\nMore.") == "One `thing` on two lines."
