"""The parts of studies: lists and variants, seeds and places, manifests and outlines, lines on runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiperf.errors import PluginError, UsageError
from aiperf.planning.kernel_options import KernelOptions
from aiperf.registry.registry import Registry
from aiperf.run.companions import Resting
from aiperf.run.fleet import Fleet, Settled
from aiperf.sdk.configuration import Option, OptionTarget, OptionValue
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.planner import PlannedTrial, Space
from aiperf.sdk.study import Dimension, Objective, Study, StudyCell, StudyRun
from aiperf.sdk.summary import Arrivals, DeliveredLoad, Measurement, Result, Summary
from aiperf.study import lists, manifests, trials
from aiperf.study.lines import line_of
from aiperf.study.manifests import RunManifest, StudyManifest
from aiperf.study.outline import StudyOutline, common
from aiperf.study.servers_queue import ServersQueue
from msgspec.structs import replace

OPTIONS = [Option(spec, (OptionTarget("", spec.field),)) for spec in Registry([]).kernel_options]


def option(flag: str) -> Option:
    return next(each for each in OPTIONS if flag in each.spec.flags)


@pytest.mark.parametrize(("flag", "text", "values", "key"), [
    ("--concurrency", "1,2, 4", (1, 2, 4), "concurrency"), ("--request-rate", "0.5,5.0,10", (0.5, 5, 10), "rate"),
    ("--benchmark-duration", "30s,1m", (30, 60), "duration"), ("--num-sessions", "1,x", (1, "x"), "sessions"),
])  # fmt: skip
def test_a_list_is_a_dimension(flag: str, text: str, values: Any, key: str) -> None:
    value = OptionValue(option(flag), flag, [text])
    assert lists.is_list(value)
    found = lists.dimension_of(value)
    assert (found.values, found.key) == (values, key)


@pytest.mark.parametrize("text", ["1,,2", "1,", "[1,2]", "1,2,1", "1,1.0"])
def test_a_list_that_makes_no_cells_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--concurrency"):
        lists.dimension_of(OptionValue(option("--concurrency"), "--concurrency", [text]))


def test_a_comma_elsewhere_stays_what_it_was() -> None:
    assert not lists.is_list(OptionValue(option("--model"), "--model", ["a,b"]))
    assert not lists.is_list(OptionValue(option("--warmup-concurrency"), "--warmup-concurrency", ["1,2"]))


def test_keys_that_two_lists_share_become_paths() -> None:
    one, other = (Dimension(f"dataset.{name}.mean", "mean", (1, 2)) for name in ("isl", "osl"))
    assert [each.key for each in lists.distinct([one, other])] == ["dataset.isl.mean", "dataset.osl.mean"]
    assert [each.key for each in lists.distinct([one])] == ["mean"]


def test_a_variant_names_options_by_their_flags_or_places() -> None:
    texts = ["small: concurrency=4, request-rate=0.5", "profiling.requests=9,streaming=true,session-header=a,b"]
    found = lists.scenarios_of(OptionValue(option("--variant"), "--variant", texts), OPTIONS, with_file=False)
    assert [each.name for each in found] == ["small", "variant_2"]
    assert found[0].parameters == {"profiling.concurrency": 4, "profiling.rate": 0.5}
    assert found[1].parameters == {"profiling.requests": 9, "endpoint.streaming": True, "endpoint.session_header": "a,b"}


def cell(index: int, name: str = "") -> StudyCell:
    return StudyCell(index, {}, name)


@pytest.mark.parametrize(("given", "seeds"), [
    ({}, [42, 42, 43]), ({"random_seed": 7}, [7, 7, 8]), ({"random_seed": 7, "sweep_same_seed": True}, [7, 7, 7]),
    ({"random_seed": 2**64 - 1}, [2**64 - 1, 2**64 - 1, 0]),
])  # fmt: skip
def test_seeds_follow_the_number_of_the_cell(given: Any, seeds: Any) -> None:
    kernel = KernelOptions(**given)
    planned = [PlannedTrial(cell(0, "a"), 1), PlannedTrial(cell(0, "a"), 2), PlannedTrial(cell(1, "b"), 1)]
    assert [trials.seed_of(kernel, each, trials.base_seed(kernel)) for each in planned] == seeds


def test_seeds_that_vary_differ_between_trials_and_stay_the_same_again() -> None:
    kernel = KernelOptions(vary_seed=True, random_seed=1)
    planned = [PlannedTrial(cell(0, "a"), trial) for trial in (1, 2, 3)]
    once = [trials.seed_of(kernel, each, 1) for each in planned]
    assert len(set(once)) == 3 and once == [trials.seed_of(kernel, each, 1) for each in planned]
    assert trials.base_seed(KernelOptions(consistent_seed=False)) is None


@pytest.mark.parametrize(("runs", "order", "sweeps", "place"), [
    (3, "repeated", False, "profile_runs/run_0002"), (1, "repeated", True, "c"),
    (3, "repeated", True, "profile_runs/trial_0002/c"), (3, "independent", True, "c/profile_runs/trial_0002"),
])  # fmt: skip
def test_a_run_lies_where_the_order_says(runs: int, order: str, sweeps: bool, place: str) -> None:
    trial = PlannedTrial(cell(0, "c" if sweeps else ""), 2)
    assert trials.directory_of(Path("out"), Space(trials=runs, order=order), trial, sweeps=sweeps) == Path("out") / place


@pytest.mark.parametrize("name", ["", "..", "a/b", "aggregate", "x" * 201])
def test_a_cell_whose_name_is_no_folder_is_the_planners_fault(name: str) -> None:
    with pytest.raises(PluginError, match="the planner p"):
        trials.check_name(cell(0, name), "the planner p", sweeps=True)


def test_only_the_first_trial_warms_up_unless_told_otherwise() -> None:
    both = [PlannedTrial(cell(0), trial) for trial in (1, 2)]
    assert [trials.warms_up(KernelOptions(), each) for each in both] == [True, False]
    assert [trials.warms_up(KernelOptions(warmup_first_only=False), each) for each in both] == [True, True]


def test_a_manifest_comes_back_and_one_cut_off_is_told(tmp_path: Path) -> None:
    manifest = RunManifest("run_0001", "ab", {"seed": 1, "cell": {"rate": 0.5}}, 1, {"aiperf": "1"}, "", {"shard-0.0.seg": 9})
    path = tmp_path / "run_manifest.json"
    assert manifests.read(path, RunManifest) is None
    manifests.save(path, manifest)
    assert manifests.read(path, RunManifest) == manifest
    for size in (0, 5, 60):
        path.write_bytes(path.read_bytes()[:size] if size < 60 else b'{"label": "x"}')
        with pytest.raises(manifests.Unreadable):
            manifests.read(path, RunManifest)


def test_a_hash_changes_with_the_content_of_the_input(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text("a")
    one, folder = manifests.data_hash(path), manifests.data_hash(tmp_path)
    path.write_text("bb")
    assert manifests.data_hash(path) != one and manifests.data_hash(tmp_path) != folder and manifests.data_hash(None) == ""


def run_of(index: int, throughput: float, latency: float, *, failed: str = "") -> StudyRun:
    results = {
        "request_throughput": Result("request_throughput", "", "requests/s", {"avg": throughput}),
        "time_to_first_token": Result("time_to_first_token", "", "ms", {"p50": latency, "p99": latency}),
    }
    measurement = Measurement("socket", False, Arrivals(), "trustworthy")
    summary = Summary("r", "1", results, (), (), measurement, DeliveredLoad(None, None, 0), (), 0, 0, "", "", {}, valid=3)
    own = StudyCell(index, {"concurrency": 2**index}, f"concurrency_{2**index}")
    return StudyRun(own, 1, Path("x"), 42, None if failed else summary, failed)


def study_of(*runs: StudyRun) -> Study:
    return Study("s", "1", Path("x"), runs, dimensions=(Dimension("profiling.concurrency", "concurrency", (1, 2, 4)),))


def test_a_line_tells_how_a_run_ended() -> None:
    numbers = ["20.00 requests/s", "TTFT p50 9.00 ms"]
    assert line_of(run_of(1, 20, 9), 1, numbers) == "concurrency_2  20.00 requests/s  TTFT p50 9.00 ms"
    assert line_of(run_of(1, 20, 9, failed="it broke"), 2, []) == "concurrency_2/trial_0001  failed: it broke"
    again = replace(run_of(1, 20, 9), resumed=True)
    assert line_of(again, 1, []) == "concurrency_2  measured before"


def test_a_study_comes_back_from_its_outline() -> None:
    runs = (run_of(0, 10, 5), run_of(1, 20, 9, failed="it broke"))
    objectives, design = (Objective("a", "p99", maximize=False),), {"points": [[1, 0.5], {"x": None}]}
    study = replace(study_of(*runs), objectives=objectives, design=design, complete=False, reason="no room")
    outline = StudyOutline.of(study, [PluginRef("exporters", "mine", "m:Mine", "acme-mine", "1.0")])
    packed = msgspec.json.encode(StudyManifest("s", "1", "c", {}, 1, outline=outline))
    read = msgspec.json.decode(packed, type=StudyManifest).outline
    assert read == outline and [each.failed for each in read.unsuccessful] == ["it broke"]
    assert read.study("s", "1", "", Path("x"), runs) == study


def test_runs_have_in_common_what_none_has_otherwise() -> None:
    first, second = {"a": {"x": 1, "y": 2}, "b": 3, "c": 4}, {"a": {"x": 1, "y": 5}, "b": 3, "d": 6}
    assert common([first, second]) == {"a": {"x": 1}, "b": 3} and common([first]) == first and common([]) == {}


class Crowd(Resting):
    """Others' requests, which never end."""

    def queued(self) -> float | None:
        return 3.0


class Queues(Fleet):
    """Waits in vain for so many requests, one run after the other.  waits: for how long it was asked to wait."""

    def __init__(self, *queued: float | None) -> None:
        super().__init__()
        self._queued, self.waits = [*queued], list[float]()

    def settle(self, cooldown_s: float, pause: Callable[[float], bool], queue_s: float = 60.0) -> Settled:
        self.waits.append(queue_s)
        return Settled(queue_s, self._queued.pop(0))


def test_a_study_waits_little_once_others_use_the_servers() -> None:
    fleet, queue = Queues(None, 0.0, 3.0, 2.0, 0.0), ServersQueue()
    assert [queue.settle(fleet, 0.0, lambda seconds: True).queued for _ in range(5)] == [None, 0.0, 3.0, 2.0, 0.0]
    assert fleet.waits == [60, 60, 60, 5, 5]


def test_a_fleet_waits_for_the_servers_queue_until_the_pause_ends() -> None:
    fleet, pauses = Fleet(), list[float]()
    fleet.companions = Crowd()

    def pause(seconds: float) -> bool:
        pauses.append(seconds)
        return len(pauses) < 3

    assert fleet.settle(0, pause, 0.0).queued == 3 and pauses == []
    assert fleet.settle(0, pause).queued == 3 and len(pauses) == 3
