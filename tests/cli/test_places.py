"""A picture goes where one can go, and replaces nothing but a picture."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rolltop.cli.main import run_command_line
from rolltop.cli.places import place_for_picture
from rolltop.errors import ConfigError

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"


@pytest.mark.parametrize("name", ["o.png", "O.PNG", "o", ".o"])
@pytest.mark.parametrize("there", [None, PNG, b""])
def test_a_png_or_a_name_without_a_suffix_is_taken(
    name: str, there: bytes | None, tmp_path: Path
) -> None:
    place = tmp_path / name
    if there is not None:
        place.write_bytes(there)
    assert place_for_picture("-o", place) == place


@pytest.mark.parametrize("name", ["o.jpg", "o.pdf", "o.svg", "o.png.gz", "run.1"])
def test_another_suffix_is_refused_with_the_name_to_choose(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        place_for_picture("-o", tmp_path / name)
    suffix = Path(name).suffix
    assert caught.value.message == f"-o {tmp_path / name}: the picture is a PNG, not {suffix}"
    assert caught.value.hint == f"-o {tmp_path / name.removesuffix(suffix)}.png"


@pytest.mark.parametrize("name", ["o.png", "o", "link.png"])
@pytest.mark.parametrize("there", [b"{}", PNG[:7], b"\xff\xd8\xff\xe0"])
def test_a_file_that_is_no_picture_is_not_replaced(name: str, there: bytes, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(there)
    (tmp_path / "link.png").symlink_to("data")
    (tmp_path / name).write_bytes(there)
    with pytest.raises(ConfigError, match="is there already, and is no PNG") as caught:
        place_for_picture("-o", tmp_path / name)
    assert caught.value.hint == "choose another name"


def test_a_link_to_a_picture_stands_for_it(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(PNG)
    (tmp_path / "link.png").symlink_to("data")
    assert place_for_picture("-o", tmp_path / "link.png") == tmp_path / "data"


def test_a_summary_is_not_drawn_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "summary").write_text("{}")
    (tmp_path / "summary.json").write_text("{}")
    for name in ("summary", "summary.json"):
        assert run_command_line(["plot", ".", "-o", name]) == 2
        assert capsys.readouterr().err.startswith(f"rolltop: --output {name}")
        assert (tmp_path / name).read_text() == "{}"


def test_a_place_whose_name_is_no_text_is_printed_as_it_is() -> None:
    program = (
        "import os; from rolltop.cli import entry; entry._open_streams(); "
        "print(os.fsdecode(b'd\\xff/o.png'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"d\xff/o.png\n"), done.stderr
