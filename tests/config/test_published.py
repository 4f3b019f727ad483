from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from rolltop.config import compose
from rolltop.config.published import FOLDER, render_schemas
from rolltop.config.simulators import installed_folders

HERE = Path(__file__).parent


@pytest.mark.parametrize("name", ["sim.schema.json", "run.schema.json"])
def test_the_committed_schema_is_the_generated_one(name: str) -> None:
    assert (FOLDER / name).read_text() == render_schemas()[name], (
        "renew it: python -m rolltop.config.published"
    )


def test_the_schema_takes_every_shipped_simulator() -> None:
    schema = json.loads((FOLDER / "sim.schema.json").read_text())
    descriptions = [
        HERE / "sims" / "conf" / "sim" / "toy.yaml",
        HERE / "sims" / "five.yaml",
        *(file for folder in installed_folders().values() for file in folder.glob("sim/*.yaml")),
    ]
    assert {file.stem for file in descriptions} >= {"toy", "five", "driving", "tiny"}
    for file in descriptions:
        jsonschema.Draft202012Validator(schema).validate(yaml.safe_load(file.read_text()))


@pytest.mark.parametrize("case", ["unknown_key", "shell_line", "timeout_zero", "no_worker"])
def test_the_schema_refuses_what_rolltop_refuses(case: str) -> None:
    schema = json.loads((FOLDER / "sim.schema.json").read_text())
    bad = yaml.safe_load((HERE / "bad" / f"{case}.bad.yaml").read_text())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(bad, schema)


def test_the_schema_of_a_run_takes_a_resolved_configuration(tmp_path: Path) -> None:
    schema = json.loads((FOLDER / "run.schema.json").read_text())
    config = compose(["sim=tiny", "topology=2gpu"], cwd=tmp_path, count_gpus=lambda: 0)
    jsonschema.validate(yaml.safe_load(config.redacted_yaml()), schema)
