"""What all parts of the schema share: no unknown key, no change afterwards, no conversion."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

WORD = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
Word = Annotated[str, Field(pattern=WORD, max_length=120)]
"""A name that can be part of a file name and of a label: letters, digits, ``.``, ``_``, ``-``."""

Positive = Annotated[int, Field(ge=1, le=1_000_000_000)]
"""A count above zero, below what a 32-bit number holds."""
Seconds = Annotated[float, Field(gt=0)]
"""A duration in seconds, above zero."""
Interval = Annotated[float, Field(ge=0.001)]
"""Seconds between two of something; Prometheus counts time in milliseconds."""


def _as_text(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


Text = Annotated[str, BeforeValidator(_as_text, json_schema_input_type=str | float | bool)]
"""An argument or a variable: a number, such as ``${runtime.rollouts}`` becomes, is text too."""


class Model(BaseModel):
    """The base of every section; validated from JSON, where a list is a tuple but "4" no number."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )
