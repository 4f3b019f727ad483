from __future__ import annotations

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from rolltop.report.textcheck import overlapping_texts, read_figure


def figure() -> Figure:
    made = Figure(figsize=(4, 3), dpi=100)
    FigureCanvasAgg(made)
    return made


def test_texts_on_each_other_are_found() -> None:
    drawn = figure()
    drawn.text(0.5, 0.5, "one")
    drawn.text(0.52, 0.51, "two")
    drawn.text(0.1, 0.9, "apart")

    assert overlapping_texts(drawn) == [("one", "two")]


def test_a_title_on_the_axes_above_is_found() -> None:
    drawn = figure()
    drawn.add_axes((0.1, 0.5, 0.8, 0.4)).set_xlabel("seconds since the start")
    drawn.add_axes((0.1, 0.1, 0.8, 0.28)).set_title("seconds since the start of it")

    assert ("seconds since the start", "seconds since the start of it") in overlapping_texts(drawn)


def test_ticks_out_of_sight_do_not_count() -> None:
    drawn = figure()
    axes = drawn.add_axes((0.2, 0.2, 0.6, 0.6))
    axes.plot([0, 1000], [0, 1])
    axes.set_xticks([0, 5, 900, 901, 902])
    axes.set_xlim(0, 10)

    assert overlapping_texts(drawn) == []


def test_crowded_ticks_are_found() -> None:
    drawn = figure()
    axes = drawn.add_axes((0.2, 0.2, 0.6, 0.6))
    axes.set_xlim(0, 10)
    axes.set_xticks([5.0, 5.1], ["five", "five and a bit"])

    assert overlapping_texts(drawn) == [("five", "five and a bit")]


def test_invisible_and_empty_texts_do_not_count() -> None:
    drawn = figure()
    drawn.text(0.5, 0.5, "one")
    drawn.text(0.5, 0.5, "hidden").set_visible(False)
    drawn.text(0.5, 0.5, " ")

    assert overlapping_texts(drawn) == []


def test_a_text_that_leaves_the_canvas_is_found() -> None:
    drawn = figure()
    drawn.text(0.95, 0.5, "far too long to fit")

    assert read_figure(drawn).outside == ["far too long to fit"]


def test_a_legend_on_the_data_is_found() -> None:
    drawn = figure()
    axes = drawn.add_axes((0.1, 0.1, 0.5, 0.7))
    axes.set_title("inside", loc="left")
    axes.plot([0, 1], label="line")
    axes.legend()
    assert read_figure(drawn).over_data == ["inside"]

    axes.legend(loc="upper left", bbox_to_anchor=(1.05, 1))
    assert read_figure(drawn).over_data == []
