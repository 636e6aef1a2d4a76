"""Objectives, rolling lines and the catalog of runs, without a command."""

from __future__ import annotations

import math

import numpy as np
import pytest
from aiperf import AiperfError, Axis, Figure, PlotRun, PlotSeries
from aiperf.sdk.plot import checked
from aiperf_plot_site.catalog import RunCatalog
from aiperf_plot_site.drawer import RunCard
from aiperf_plot_site.objectives import RequestLimit, parsed
from aiperf_plot_site.rolled import rolled


@pytest.mark.parametrize("text", ["", "ttft", "ttft:", ":3", "ttft:inf", "ttft:nan", "ttft:3 ms"])
def test_what_is_no_objective_is_told(text: str) -> None:
    with pytest.raises(AiperfError, match="is no objective"):
        parsed([text])


def test_throughputs_have_a_least_value() -> None:
    found = parsed(["time_to_first_token:300", "output_token_throughput_per_user:20.5"])
    assert found == [RequestLimit("time_to_first_token", 300.0), RequestLimit("output_token_throughput_per_user", 20.5)]
    assert [each.at_least for each in found] == [False, True]


def test_a_rolling_line_is_in_the_order_of_x() -> None:
    x, y = np.array([3.0, 1.0, 2.0]), np.array([30.0, 10.0, 20.0])
    series = PlotSeries("a", x, y, "points", points="request"), PlotSeries("b", x, y, "points")
    figure = Figure("t", Axis("x"), Axis("y"), series)
    made = checked(rolled(figure, 2))
    assert [one.name for one in made.series] == ["a", "b", "a: rolling p50 of 2"]
    assert made.series[2].x.tolist() == [1.0, 2.0, 3.0]
    assert made.series[2].y.tolist() == [10.0, 15.0, 25.0]


def test_a_run_that_fails_in_any_way_is_listed_with_a_sentence() -> None:
    def card(run: PlotRun) -> RunCard:
        if run.label == "b":
            raise AiperfError("it can't be read")
        if run.label == "c":
            raise TypeError("no number")
        return RunCard(("m",), math.pi, "rate", "3.14 requests/s", None, 0, 0, None, ())

    catalog = RunCatalog([PlotRun(label, {}) for label in "abc"], card)
    catalog.read()
    found = {run["label"]: run.get("problem") for run in catalog.listed("", "", "", 0)["runs"]}
    assert found["a"] is None
    assert found["b"] == "it can't be read"
    assert "TypeError" in found["c"]
    assert len(set(catalog.names())) == 3
