"""The schemas as JSON Schema, beside the code; ``python -m rolltop.config.published`` renews."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from rolltop.config.schema import RunConfig, Simulator

if TYPE_CHECKING:
    from pydantic import BaseModel

FOLDER = Path(__file__).with_name("schema")
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def render_schemas() -> dict[str, str]:
    """Return file name -> text: a simulator's description, and a run's resolved configuration."""
    models: dict[str, type[BaseModel]] = {
        "sim.schema.json": Simulator,
        "run.schema.json": RunConfig,
    }
    return {
        name: json.dumps({"$schema": DIALECT, **model.model_json_schema()}, indent=2) + "\n"
        for name, model in models.items()
    }


if __name__ == "__main__":
    for name, text in render_schemas().items():
        (FOLDER / name).write_text(text)
