from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
from rolltop_refsim.rpc import generate

METHODS = {
    "renderer": ["batch_render_rgb"],
    "driver": [
        "start_session",
        "submit_image_observation",
        "submit_egomotion_observation",
        "submit_route",
        "drive",
        "close_session",
    ],
    "controller": ["start_session", "run_controller_and_vehicle", "close_session"],
    "physics": ["ground_intersection"],
    "trafficsim": ["start_session", "simulate", "close_session"],
    "scheduler": ["lease", "report"],
}


def test_the_committed_modules_are_what_the_protos_generate(tmp_path: Path) -> None:
    generated = generate.generate(tmp_path)
    committed = sorted(generate.HERE.glob("*_pb2*"))
    assert [path.name for path in generated] == [path.name for path in committed]
    for new, old in zip(generated, committed, strict=True):
        assert new.read_text() == old.read_text(), f"{old.name}: run {generate.__name__} again"


@pytest.mark.parametrize("service", sorted(METHODS))
def test_methods_are_named_as_the_telemetry_labels_them(service: str) -> None:
    descriptor = importlib.import_module(f"rolltop_refsim.rpc.{service}_pb2").DESCRIPTOR
    methods = [m.name for m in descriptor.services_by_name[service.capitalize()].methods]
    assert methods == METHODS[service]
    assert all(re.fullmatch(r"[a-z_]+", name) for name in methods)
