from __future__ import annotations

import dataclasses
import gc
from typing import TYPE_CHECKING

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from PIL import Image

from rolltop.catalogue.panel import Kind
from rolltop.catalogue.panels import PANELS
from rolltop.report.collect import PanelData, PanelLine
from rolltop.report.course import Course
from rolltop.report.heading import PlotHeader
from rolltop.report.plot import build_sheet, draw_plot, panel_report
from rolltop.report.textcheck import Reading, read_figure
from tests.report.shapes import START_S, empty, filled, with_values

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

HEADER = PlotHeader("demo", ("run 0f3a92c1 · 12 of 12 rollouts", "3.8 ± 0.1 s per rollout"))
MANY = [f"renderer-{i}" for i in range(64)]
LONG = [f"a-service-with-a-rather-long-name-of-its-own-{i}" for i in range(9)]


def some(data: list[PanelData]) -> list[PanelData]:
    """Return panels of every kind, few enough to be drawn in a moment."""
    return data[5:18:2]


SHAPES = {
    "a run": filled(),
    "nothing": empty("no GPU exporter in this run (no target of job alpasim-dcgm)"),
    "64 of everything": some(filled(MANY)),
    "numbered workers": some(filled([str(i) for i in range(64)])),
    "long names": some(filled(LONG)),
    "microseconds": some(filled(scale=1e-6)),
    "millions": some(filled(scale=1e7)),
    "an hour": some(filled(seconds=3600.0)),
    "long reasons": some(empty("the query failed: at http://127.0.0.1:9090 " + "word " * 90)),
    "wide letters": some(filled(["W" * 40, "M" * 30])),
    "a job's name": some(filled(["alpasim-runtime-worker"])),
    "half of it": some([d for pair in zip(filled(), empty("none"), strict=True) for d in pair]),
}


def titled(data: list[PanelData], title: str) -> list[PanelData]:
    """Return the panels under another title."""
    return [dataclasses.replace(d, panel=dataclasses.replace(d.panel, title=title)) for d in data]


def lined(key: str, values: dict[str, list[float]]) -> list[PanelData]:
    """Return one panel with these series, by their legends."""
    (panel,) = (p for p in PANELS if p.key == key)
    lines = tuple(
        PanelLine(name, name.partition(" ")[0], START_S + np.arange(len(v)), np.array(v))
        for name, v in values.items()
    )
    return [PanelData(panel, lines)]


def course(seconds: float = 90.0, warm_up_s: float | None = 12.0) -> Course:
    return Course(START_S, seconds, warm_up_s)


SHAPES["long titles"] = titled(some(filled()), "How long an answer waits for its turn, " * 3)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_text_can_be_read(shape: str) -> None:
    seconds = 3600.0 if shape == "an hour" else 90.0
    sheet = build_sheet(SHAPES[shape], HEADER, course(seconds))

    assert read_figure(sheet.figure) == Reading([], [], over_data=[])
    for axes, (left, right) in zip(sheet.figure.axes, sheet.cells, strict=True):
        box = axes.get_tightbbox()
        assert box is not None
        assert left <= box.x0, axes.get_title(loc="left")
        assert box.x1 <= right, axes.get_title(loc="left")


@pytest.fixture(scope="module")
def figure() -> Figure:
    """The sheet of a run, to be looked at only."""
    return build_sheet(filled(), HEADER, course(90, 12)).figure


def test_every_panel_has_its_title_and_its_unit(figure: Figure) -> None:
    assert [axes.get_title(loc="left") for axes in figure.axes] == [p.title for p in PANELS]
    for axes, panel in zip(figure.axes, PANELS, strict=True):
        unit = axes.get_ylabel() or axes.get_xlabel()
        assert unit.split()[-1] == panel.unit.split()[-1] or unit in {"ms", "s"}


def test_the_axes_of_lines_take_nearly_all_of_their_cell() -> None:
    sheet = build_sheet(filled(), HEADER, course())

    for axes, data, (left, right) in zip(sheet.figure.axes, sheet.data, sheet.cells, strict=True):
        share = axes.get_window_extent().width / (right - left)
        assert data.panel.kind is Kind.BARS or share > 0.85, data.panel.key


def test_panels_that_are_empty_for_one_reason_share_a_line_at_the_end() -> None:
    data = filled()
    machines = [d.panel.title for d in data if d.panel.section == "Machines"]
    data = [
        dataclasses.replace(d, lines=(), reason="no exporter\nat all")
        if d.panel.title in machines
        else d
        for d in data
    ]
    sheet = build_sheet(data, HEADER, course())
    texts = [t.get_text() for t in sheet.figure.texts]

    assert texts[-2:] == ["NOTHING TO SHOW", "no exporter: " + " · ".join(machines)]
    assert "MACHINES" not in texts
    assert len(sheet.figure.axes) == len(data) - len(machines)
    assert [d.panel for d in sheet.data] == [d.panel for d in data]
    assert panel_report(sheet.data).empty == dict.fromkeys(machines, "no exporter\nat all")


def test_a_failed_panel_shows_its_error_beside_the_others() -> None:
    data = some(filled())
    data[3] = PanelData(data[3].panel, reason="the query failed: refused", failed=True)
    figure = build_sheet(data, HEADER, course()).figure

    panel = data[3].panel
    assert figure.axes[3].get_title(loc="left") == f"{panel.title} ({panel.unit})"
    assert [t.get_text() for t in figure.axes[3].texts] == ["the query failed: refused"]
    drawn = [axes for axes in figure.axes if axes.lines or axes.collections or axes.patches]
    assert len(drawn) == len(data) - 1
    assert panel_report(data).empty == {data[3].panel.title: "the query failed: refused"}


def test_the_collector_of_garbage_is_as_it_was_before(tmp_path: Path) -> None:
    draw_plot(tmp_path / "plot.png", empty("none")[:1], HEADER, course())
    assert gc.isenabled()

    gc.disable()
    try:
        draw_plot(tmp_path / "plot.png", empty("none")[:1], HEADER, course())
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_service_has_one_colour_in_all_panels(figure: Figure) -> None:
    colours = {
        line.get_color()
        for axes in figure.axes
        if (legend := axes.get_legend()) is not None
        for text, line in zip(legend.get_texts(), legend.get_lines(), strict=False)
        if text.get_text() == "driver" and len(legend.get_lines()) >= 5
    }

    assert colours == {"#e69f00"}


def test_a_crowd_is_counted_not_listed() -> None:
    keys = {"calls", "endpoint_service"}
    crowd = [d for d in filled(MANY) if d.panel.key in keys]
    figure = build_sheet(crowd, HEADER, course()).figure
    by_title = {axes.get_title(loc="left"): axes for axes in figure.axes}
    lines = by_title["Calls per second"]
    legend = lines.get_legend()

    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()][-1] == "and 55 more"
    assert len(legend.get_texts()) == 10
    assert len(lines.lines) >= 64
    bars = by_title["A call is served, mean by instance"]
    assert bars.get_yticklabels()[-1].get_text() == "and 56 smaller"


def test_the_time_axis_is_the_runs_own_with_the_warm_up_shaded(figure: Figure) -> None:
    axes = figure.axes[0]

    assert axes.get_xlim() == (0, 90)
    assert [label.get_text() for label in axes.get_xticklabels()][:3] == ["0", "20 s", "40 s"]
    shaded = [p for p in axes.patches if p.get_extents().width > 0]
    assert len(shaded) == 1
    assert axes.transData.inverted().transform(shaded[0].get_extents())[1][0] == pytest.approx(12)


def test_values_start_at_zero() -> None:
    figure = build_sheet(some(with_values([100.0, 101.0, 100.5])), HEADER, course(3)).figure

    assert {axes.get_ylim()[0] for axes in figure.axes if axes.get_ylabel()} == {0.0}


def ticks(axis: Axis) -> list[str]:
    low, high = axis.get_view_interval()
    places = [t for t in axis.get_majorticklocs() if low <= t <= high]
    return axis.get_major_formatter().format_ticks(places)


def test_a_panel_of_zeros_goes_from_0_to_1_and_counts_in_whole_numbers() -> None:
    sheet = build_sheet(with_values([0.0] * 5), HEADER, course(4))
    sheet.figure.draw_without_rendering()

    for axes, data in zip(sheet.figure.axes, sheet.data, strict=True):
        bars = data.panel.kind is Kind.BARS
        axis = axes.xaxis if bars else axes.yaxis
        if data.panel.y_max is None:
            assert axis.get_view_interval() == pytest.approx([0, 1]), data.panel.key
        counts = {"rollouts", "failures", "worker_rollouts", "samples", "queue_depth"}
        assert data.panel.key not in counts or ticks(axis) == ["0", "1"]
        assert 2 <= len(ticks(axis)) <= 5


def test_counts_have_whole_ticks_only() -> None:
    figure = build_sheet(lined("failures", {"driver": [0, 1, 2, 2]}), HEADER, course(3)).figure

    assert ticks(figure.axes[0].yaxis) == ["0", "1", "2"]


def test_each_range_has_a_lane_of_its_own() -> None:
    values: dict[str, list[float]] = {
        "renderer max": [3, 3], "driver max": [2, 4], "renderer min": [1, 0], "driver min": [0, 1],
    }  # fmt: skip
    (axes,) = build_sheet(lined("queue_depth", values), HEADER, course(1)).figure.axes
    legend = axes.get_legend()

    assert legend is not None
    assert [t.get_text() for t in legend.get_texts()] == [
        "renderer",
        "driver",
        "shaded: min to max",
    ]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["3", "4"]
    renderer, driver = (band.get_datalim(axes.transData) for band in axes.collections)
    assert (renderer.y0, renderer.y1) == pytest.approx((1.0, 1.8))
    assert (driver.y0, driver.y1) == pytest.approx((0.0, 0.8))
    assert axes.get_ylabel() == "calls, each from 0"


def test_half_a_range_is_a_line() -> None:
    values: dict[str, list[float]] = {"renderer max": [3, 3], "driver max": [2, 4]}
    (axes,) = build_sheet(lined("queue_depth", values), HEADER, course(1)).figure.axes

    assert len(axes.lines) == 2
    assert not axes.collections


def test_the_largest_ranges_have_a_lane() -> None:
    values = {f"s{i} {end}": [float(i)] * 2 for i in range(1, 10) for end in ("max", "min")}
    (axes,) = build_sheet(lined("queue_depth", values), HEADER, course(1)).figure.axes

    assert [label.get_text() for label in axes.get_yticklabels()] == ["9", "8", "7", "6", "5", "4"]


def test_mean_and_median_differ_in_dashes_and_in_lightness() -> None:
    values = {"mean": [1.0, 2.0], "median": [1.0, 2.0], "95th percentile": [3.0, 3.0]}
    data = lined("step_duration", values)
    (axes,) = build_sheet(data, HEADER, course(1)).figure.axes
    mean, median, _ = axes.lines

    assert (mean.get_linestyle(), median.get_linestyle()) == ("-", "--")
    greys = sorted(0.3 * r + 0.59 * g + 0.11 * b for r, g, b in map(to_rgb, colours_of(axes)))
    assert min(np.diff(greys)) > 0.15


def colours_of(axes: Axes) -> list[str]:
    return [str(line.get_color()) for line in axes.lines]


def test_a_value_alone_is_seen() -> None:
    data = lined("step_rate", {"all workers": [np.nan, 3.0, np.nan, 2.0, 2.0]})
    (axes,) = build_sheet(data, HEADER, course(4)).figure.axes

    assert axes.lines[0].get_marker() == "o"
    assert axes.lines[0].get_markevery() == [1]


def top_and_words(values: list[float]) -> tuple[float, list[str]]:
    (data,) = (d for d in with_values(values) if d.panel.key == "rpc_mean")
    (axes,) = build_sheet([data], HEADER, course(32)).figure.axes
    return axes.get_ylim()[1], [text.get_text() for text in axes.texts]


def test_a_peak_at_the_start_is_cut_off_and_said_so_beside_it() -> None:
    cut = top_and_words([4.0, 3.0, *np.full(30, 0.5)])
    assert cut == (pytest.approx(0.625), ["↑ 4 at 0 s, cut off: the rest would be flat"])

    assert top_and_words([*np.full(30, 0.5), 4.0, 0.5]) == (pytest.approx(4.32), [])


def test_peaks_are_not_cut_off_where_there_is_no_level_beside_them() -> None:
    spikes = [4.0, *np.zeros(15), 0.5, *np.zeros(15)]

    assert top_and_words(spikes) == (pytest.approx(4.32), [])


def test_the_words_on_a_late_peak_stay_within_their_axes() -> None:
    late = [*np.full(24, np.nan), 4.0, *np.full(7, 0.5)]
    (data,) = (d for d in with_values(late) if d.panel.key == "rpc_mean")
    line = data.lines[0]
    begun = dataclasses.replace(line, t_s=line.t_s[24:], values=line.values[24:])
    figure = build_sheet([dataclasses.replace(data, lines=(begun,))], HEADER, course(32)).figure
    (axes,) = figure.axes
    figure.draw_without_rendering()

    assert axes.texts[0].get_window_extent().x1 <= axes.get_window_extent().x1 + 1


@pytest.mark.parametrize(
    "values",
    [[0.0], [0.0] * 5, [np.nan, 1.0, np.nan], [1.0, np.inf, 2.0], [-1.0, 2.0], [1e300, 1e-300]],
    ids=str,
)
def test_no_value_stops_the_plot(values: list[float], tmp_path: Path) -> None:
    path = tmp_path / "metrics_plot.png"
    data = some(with_values(values))
    report = draw_plot(path, data, HEADER, course(5))

    assert len(report.drawn) + len(report.empty) == len(data)
    with Image.open(path) as image:
        assert image.format == "PNG"


def test_a_panel_that_cannot_be_drawn_says_so_in_its_place(tmp_path: Path) -> None:
    data = some(filled())
    crooked = PanelLine("renderer", "renderer", np.zeros(3), np.zeros(2))
    data[1] = PanelData(data[1].panel, (crooked,))
    report = draw_plot(tmp_path / "plot.png", data, HEADER, course())

    assert len(report.drawn) == len(data) - 1
    assert report.empty[data[1].panel.title].startswith("it could not be drawn: ")


def test_a_name_is_text_not_mathematics(tmp_path: Path) -> None:
    header = PlotHeader("cost $5 ~ {x}_i 走る", ("50 % of $RUN$",))
    draw_plot(tmp_path / "plot.png", some(filled(["$a_", "\\alpha"])), header, course())

    assert (tmp_path / "plot.png").stat().st_mode & 0o777 == 0o640


def test_the_plot_is_there_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "absent" / "plot.png"
    with pytest.raises(OSError, match="absent"):
        draw_plot(path, some(filled()), HEADER, course())

    assert list(tmp_path.iterdir()) == []
