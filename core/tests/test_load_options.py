"""Load options as they are typed: what each mode takes, what is refused and why, and what the phases come to."""

from __future__ import annotations

import shlex
import socket
from pathlib import Path
from typing import Any

import pytest
from aiperf import environment
from aiperf.cli.commandline import CommandLine, options_of
from aiperf.cli.settings import profile_settings
from aiperf.errors import AiperfError, ConfigErrors
from aiperf.planning import configure
from aiperf.planning.phases import section, target
from aiperf.registry.registry import Registry
from aiperf.sdk.descriptor import Descriptor
from aiperf.sdk.plan import PhasePlan, Plan, Replay


def row(category: str, name: str, value: str = "os:path", **capabilities: Any) -> Descriptor:
    return Descriptor(category, name, value, "acme", "1.0", capabilities=capabilities)


PLUGINS = [
    row("endpoints", "chat", "aiperf.sdk.endpoint:Endpoint", path="/chat", streaming=True),
    row("endpoints", "vectors", "aiperf.sdk.endpoint:Endpoint", path="/embed"),
    row("datasets", "synthetic"),
    row("datasets", "trace", "dataset_fakes:Traces", reads=True, trace=True),
    row("datasets", "turns", "dataset_fakes:Turns", reads=True, keys=["turns"]),
    row("transports", "kernel"), row("reducers", "columns", "dataset_fakes:Turns"),
    row("hooks", "looks", "dataset_fakes:Looks"),
    row("schedules", "burst", follows="free_slots"), row("schedules", "request_rate", follows="rate"),
    row("schedules", "fixed_schedule", follows="trace"), row("schedules", "user_centric", follows="users"),
    row("arrivals", "constant"), row("arrivals", "poisson"), row("arrivals", "gamma", smoothness=True),
    row("ramps", "linear"), row("ramps", "exponential"), row("uis", "simple"), row("uis", "none"),
    row("engines", "local", shares_memory=True),
    row("samplers", "sequential", in_order=True), row("samplers", "shuffle"), row("samplers", "random", repeats=True),
    row("drivers", "burst", drives="free_slots"),
    row("url_strategies", "round_robin"), row("url_strategies", "weighted", weights=True),
    row("url_strategies", "least_in_flight", weights=True, uses_load=True),
]  # fmt: skip
TRACE = '{"timestamp": 0, "text": "a"}\n{"timestamp": 5, "text": "b"}\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tests' directory, with a trace and a series of rates."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace.jsonl").write_text(TRACE)
    (tmp_path / "rates.json").write_text("[[0, 5], [60, 50]]")
    return tmp_path


def plan(line: str, *more: Descriptor) -> Plan:
    """The plan of ``aiperf profile --model m LINE``; *more*: plugins besides those above.

    Raises:
        UsageError, ConfigErrors: What is wrong with the line.
    """
    registry = Registry([*PLUGINS, *more])
    read = CommandLine(["--model", "m", *shlex.split(line)]).resolve(options_of(registry.kernel_options, PLUGINS))
    if read.errors:
        raise read.errors[0]
    return configure.plan(profile_settings(registry, read), registry)[0]


def profiling(line: str) -> PhasePlan:
    return plan(line).load.phases[-1]


def warmup(line: str) -> PhasePlan:
    first, _ = plan(line).load.phases
    return first


def refusals(line: str, *more: Descriptor) -> list[str]:
    """What is said of the line, a string an error, hints included.  *more*: as for :func:`plan`."""
    with pytest.raises(AiperfError) as caught:
        plan(line, *more)
    errors = caught.value.errors if isinstance(caught.value, ConfigErrors) else [caught.value]
    return ["\n".join(error.lines()) for error in errors]


BURST = "--concurrency 4 --request-count 20"
RATE = "--request-rate 5 --request-count 20"
FIXED = "--fixed-schedule --input-file trace.jsonl"
RECORDED = "--warmup-fixed-schedule --input-file trace.jsonl"
USERS = "--user-centric-rate 2 --num-users 4 --request-count 20"

TWO_WAYS = [
    # line, what its one message names; the numbers are those of the specification's table of validation errors
    ("1", "--user-centric-rate 2 --request-count 9", "--user-centric-rate --num-users add drop"),
    ("2", f"{USERS} --request-rate 5", "--user-centric-rate --request-rate drop two"),
    ("3", f"{USERS} --arrival-pattern constant", "--user-centric-rate --arrival-pattern drop"),
    ("5", f"{BURST} --num-users 4", "--num-users --user-centric-rate add drop"),
    ("5", f"{RATE} --num-users 4", "--num-users --user-centric-rate add drop"),
    ("6", "--user-centric-rate 2 --num-users 4 --num-sessions 3", "--num-sessions 3 --num-users 4 raise lower"),
    ("7", "--user-centric-rate 2 --num-users 12 --request-count 10", "--request-count 10 --num-users 12 raise lower"),
    ("8", f"{FIXED} --request-rate 5", "--fixed-schedule --request-rate drop"),
    ("8", f"{FIXED} --user-centric-rate 5", "--fixed-schedule --user-centric-rate drop"),
    ("8", f"{FIXED} --num-users 5", "--fixed-schedule --num-users drop"),
    ("8", f"{FIXED} --vllm-burstiness 2", "--fixed-schedule --vllm-burstiness drop"),
    ("8", f"{FIXED} --request-rate-series rates.json", "--fixed-schedule --request-rate-series drop"),
    ("9", f"{FIXED} --arrival-pattern poisson", "--fixed-schedule --arrival-pattern drop"),
    ("10", f"{BURST} --fixed-schedule-end-offset 5", "--fixed-schedule-end-offset --fixed-schedule add drop"),
    ("10", f"{BURST} --fixed-schedule-start-offset 1 --fixed-schedule-end-offset 5",
     "--fixed-schedule-start-offset --fixed-schedule-end-offset --fixed-schedule add drop"),
    ("10", f"{RATE} --no-fixed-schedule-auto-offset", "--no-fixed-schedule-auto-offset --fixed-schedule add drop"),
    ("10", f"{BURST} --warmup-request-count 2 --warmup-fixed-schedule-end-offset 5",
     "--warmup-fixed-schedule-end-offset --warmup-fixed-schedule add drop"),
    ("11", f"{BURST} {RECORDED} --warmup-fixed-schedule-start-offset 1 --warmup-fixed-schedule-auto-offset",
     "--warmup-fixed-schedule-start-offset --warmup-fixed-schedule-auto-offset keep drop"),
    ("12", f"{BURST} {RECORDED} --warmup-fixed-schedule-start-offset 9 --warmup-fixed-schedule-end-offset 5",
     "--warmup-fixed-schedule-start-offset 9 --warmup-fixed-schedule-end-offset 5 lower raise"),
    ("13", f"{BURST} --warmup-fixed-schedule", "--warmup-fixed-schedule --input-file add drop"),
    ("8", f"{BURST} {RECORDED} --warmup-request-rate 5", "--warmup-fixed-schedule --warmup-request-rate keep drop"),
    ("11", f"{FIXED} --fixed-schedule-start-offset 1 --fixed-schedule-auto-offset",
     "--fixed-schedule-start-offset --fixed-schedule-auto-offset keep drop"),
    ("12", f"{FIXED} --fixed-schedule-start-offset 9 --fixed-schedule-end-offset 5",
     "--fixed-schedule-start-offset 9 --fixed-schedule-end-offset 5 lower raise"),
    ("13", "--fixed-schedule", "--fixed-schedule --input-file add drop"),
    ("15", f"{FIXED} --dataset-sampling-strategy shuffle",
     "--dataset-sampling-strategy shuffle --fixed-schedule drop sequential"),
    ("17", f"{RATE} --arrival-pattern constant --arrival-smoothness 2", "--arrival-smoothness --arrival-pattern gamma drop"),
    ("17", f"{BURST} --arrival-smoothness 2", "--arrival-smoothness --request-rate add drop"),
    ("18", f"{RATE} --arrival-pattern concurrency_burst", "--arrival-pattern concurrency_burst --request-rate drop"),
    ("19", f"{BURST} --request-rate-mode poisson", "--request-rate-mode --request-rate add drop"),
    ("20", f"{BURST} --request-rate-ramp-duration 3", "--request-rate-ramp-duration --request-rate add drop"),
    ("20", f"{FIXED} --request-rate-ramp-duration 3", "--request-rate-ramp-duration --fixed-schedule drop"),
    ("20", f"{USERS} --request-rate-ramp-duration 3", "--request-rate-ramp-duration --user-centric-rate drop"),
    ("20", "--request-rate-series rates.json --request-rate-ramp-duration 3",
     "--request-rate-ramp-duration --request-rate-series --request-rate drop"),
    ("21", f"{RATE} --concurrency-ramp-duration 3", "--concurrency-ramp-duration --concurrency add drop"),
    ("21", f"{BURST} --prefill-concurrency-ramp-duration 3",
     "--prefill-concurrency-ramp-duration --prefill-concurrency add drop"),
    ("22", f"{BURST} --prefill-concurrency 2", "--prefill-concurrency --streaming add drop"),
    ("22", f"{BURST} --warmup-request-count 2 --warmup-prefill-concurrency 2",
     "--warmup-prefill-concurrency --streaming add drop"),
    ("22", f"{BURST} --endpoint-type vectors --streaming --prefill-concurrency 2",
     "--prefill-concurrency vectors drop choose"),
    ("23", f"{BURST} --streaming --prefill-concurrency 5", "--prefill-concurrency 5 --concurrency 4 lower raise"),
    ("23", f"{BURST} --streaming --warmup-duration 1 --warmup-prefill-concurrency 5",
     "--warmup-prefill-concurrency 5 --concurrency 4 lower raise"),
    ("23", f"{BURST} --streaming --warmup-duration 1 --warmup-concurrency 2 --warmup-prefill-concurrency 3",
     "--warmup-prefill-concurrency 3 --warmup-concurrency 2 lower raise"),
    ("24", f"{BURST} --benchmark-grace-period 3", "--benchmark-grace-period --benchmark-duration add drop"),
    ("25", f"{BURST} --warmup-grace-period 3", "--warmup-grace-period --warmup-duration add drop"),
    ("25", f"{BURST} --warmup-request-count 3 --warmup-grace-period 3",
     "--warmup-grace-period --warmup-duration add drop"),
    ("26", f"{BURST} --warmup-request-count 3 --warmup-request-rate-ramp-duration 3",
     "--warmup-request-rate-ramp-duration --warmup-request-rate --request-rate add drop"),
    *(("27", f"{RATE} --concurrency 9 --streaming {flag} {value}",
       f"{flag} --warmup-request-count --num-warmup-sessions --warmup-duration add drop")
      for flag, value in (
          ("--warmup-concurrency", 2), ("--warmup-prefill-concurrency", 2), ("--warmup-request-rate", 2),
          ("--warmup-arrival-pattern", "constant"), ("--warmup-concurrency-ramp-duration", 2),
          ("--warmup-prefill-concurrency-ramp-duration", 2), ("--warmup-request-rate-ramp-duration", 2))),
    ("28", f"{BURST} --request-cancellation-delay 1",
     "--request-cancellation-delay --request-cancellation-rate add drop"),
    ("29", f"{BURST} --num-conversations 20", "--request-count --num-conversations keep drop"),
    ("30", f"{BURST} --num-warmup-requests 2 --num-warmup-sessions 2",
     "--num-warmup-requests --num-warmup-sessions keep drop"),
    ("31", "--concurrency 50 --request-count 10", "--concurrency 50 --request-count 10 lower raise"),
    ("31", "--concurrency 50 --num-sessions 10", "--concurrency 50 --num-sessions 10 lower raise"),
    ("32", "--user-centric-rate 2 --num-users 4",
     "--user-centric-rate --request-count --num-sessions --benchmark-duration add"),
    # Of ours
    ("", f"{RATE} --request-rate-series rates.json", "--request-rate --request-rate-series keep drop"),
    ("", f"{USERS} --request-rate-series rates.json", "--user-centric-rate --request-rate-series drop"),
    ("", f"{RATE} --ramp exponential", "--ramp --concurrency-ramp-duration add drop"),
    ("", f"{RATE} --warmup-request-count 2 --warmup-concurrency-ramp-duration 2",
     "--warmup-concurrency-ramp-duration --warmup-concurrency --concurrency add drop"),
    ("", f"{BURST} --streaming --warmup-request-count 2 --warmup-prefill-concurrency-ramp-duration 2",
     "--warmup-prefill-concurrency-ramp-duration --warmup-prefill-concurrency --prefill-concurrency add drop"),
    ("", f"{BURST} --arrival-pattern concurrency_burst", "--arrival-pattern concurrency_burst --request-rate drop"),
    ("", f"{BURST} --url http://a=2,http://b", "--url --url-strategy round_robin weighted drop"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "named"), [(line, named) for _, line, named in TWO_WAYS])
def test_impossible_loads_are_refused_with_flags_and_remedies(line: str, named: str) -> None:
    said = refusals(line)
    assert len(said) == 1, said
    assert [word for word in named.split() if word not in said[0]] == []
    assert "\n  " in said[0], "the ways out have a line of their own"


def test_refused_load_options_end_with_1() -> None:
    with pytest.raises(ConfigErrors) as caught:
        plan(f"{USERS} --request-rate 5")
    assert caught.value.exit_code == 1


def test_all_mistakes_of_a_line_come_in_one_report() -> None:
    said = refusals(
        "--user-centric-rate 2 --request-rate 5 --arrival-pattern constant --prefill-concurrency 3 --concurrency 2 "
        "--fixed-schedule-end-offset 5 --warmup-concurrency 2 --request-cancellation-delay 1 --benchmark-grace-period 2"
    )
    assert len(said) == len(set(said)) == 10
    named = ("--request-rate", "--arrival-pattern", "--num-users", "--streaming", "--fixed-schedule-end-offset",
             "--warmup-concurrency", "--request-cancellation-delay", "--benchmark-grace-period", "no stop")  # fmt: skip
    assert [word for word in named if not any(word in one for one in said)] == []


@pytest.mark.parametrize(("line", "said"), [
    ("--concurrency 0", "--concurrency: 0 is not allowed; must be at least 1"),
    ("--prefill-concurrency 0", "--prefill-concurrency: 0 is not allowed; must be at least 1"),
    ("--request-rate 0", "--request-rate: 0 is not allowed; must be more than 0"),
    ("--request-rate inf", "--request-rate: inf is not allowed; must be a finite number"),
    ("--request-rate nan", "--request-rate: nan is not allowed; must be a finite number"),
    ("--user-centric-rate -1", "--user-centric-rate: -1 is not allowed; must be more than 0"),
    ("--num-users 0", "--num-users: 0 is not allowed; must be at least 1"),
    ("--num-requests 2.5", "--num-requests: '2.5' is not a whole number"),
    ("--num-sessions 0", "--num-sessions: 0 is not allowed; must be at least 1"),
    ("--benchmark-duration 0", "--benchmark-duration: 0 is not allowed; must be more than 0"),
    ("--benchmark-duration inf", "--benchmark-duration: inf is not allowed; must be a finite number"),
    ("--benchmark-grace-period -1", "--benchmark-grace-period: -1 is not allowed; must be at least 0"),
    ("--arrival-smoothness 0", "--arrival-smoothness: 0 is not allowed; must be more than 0"),
    ("--fixed-schedule-start-offset -5", "--fixed-schedule-start-offset: -5 is not allowed; must be at least 0"),
    ("--request-cancellation-rate 101", "--request-cancellation-rate: 101 is not allowed; must be at most 100"),
    ("--request-cancellation-delay -1", "--request-cancellation-delay: -1 is not allowed; must be at least 0"),
    ("--failed-request-threshold 1.1", "--failed-request-threshold: 1.1 is not allowed; must be at most 1"),
    ("--failed-request-threshold 50", "--failed-request-threshold: 50 is not allowed; must be at most 1"),
    ("--failed-request-threshold -1", "--failed-request-threshold: -1 is not allowed; must be at least 0"),
    ("--failed-request-threshold NaN", "--failed-request-threshold: NaN is not allowed; must be a finite number"),
    ("--stats-interval 1001", "--stats-interval: 1001 is not allowed; must be at most 1000"),
    ("--concurrency-ramp-duration 0", "--concurrency-ramp-duration: 0 is not allowed; must be more than 0"),
    ("--warmup-request-count 0", "--warmup-request-count: 0 is not allowed; must be at least 1"),
    ("--session-delay-ratio -1", "--session-delay-ratio: -1 is not allowed; must be at least 0"),
])  # fmt: skip
def test_a_number_out_of_range_names_flag_value_and_range(line: str, said: str) -> None:
    assert refusals(line) == [said]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--warmup-user-centric-rate 2 --warmup-request-count 8", "--warmup-user-centric-rate needs"),
        ("--warmup-num-users 4 --warmup-request-count 8", "--warmup-num-users needs --warmup-user-centric-rate"),
        ("--warmup-user-centric-rate 2 --warmup-num-users 4", "--warmup-user-centric-rate needs "),
        ("--warmup-user-centric-rate 2 --warmup-num-users 4 --warmup-request-count 3",
         "--warmup-request-count 3 is less than --warmup-num-users 4"),
        ("--warmup-user-centric-rate 2 --warmup-num-users 4 --warmup-request-count 8 --warmup-request-rate 3",
         "--warmup-user-centric-rate and --warmup-request-rate exclude each other"),
    ],
)  # fmt: skip
def test_users_of_a_warmup_are_checked(line: str, said: str) -> None:
    assert any(each.startswith(said) for each in refusals(line)), refusals(line)


def test_a_warmup_has_users_of_its_own() -> None:
    warmup, profiling = plan(f"--warmup-user-centric-rate 2 --warmup-num-users 4 --warmup-request-count 8 {BURST}").load.phases
    assert (warmup.schedule, warmup.users, warmup.rate, warmup.request_count) == ("user_centric", 4, 2.0, 8)
    assert (profiling.schedule, profiling.users) == ("burst", None)


def test_a_warmup_replays_a_trace_before_another_load() -> None:
    recorded, profiling = plan(f"{RECORDED} --warmup-fixed-schedule-end-offset 900 {BURST}").load.phases
    assert (recorded.schedule, recorded.concurrency, recorded.entries) == ("fixed_schedule", None, profiling.entries)
    assert recorded.replay == Replay(auto_offset=True, start_ms=None, end_ms=900)
    assert (profiling.schedule, profiling.replay) == ("burst", None)
    both = plan(f"{FIXED} --fixed-schedule-start-offset 900 --warmup-fixed-schedule").load.phases
    assert [each.replay for each in both] == [Replay(), Replay(auto_offset=False, start_ms=900)]


def test_switching_the_same_thing_on_and_off_is_refused() -> None:
    (said,) = refusals("--fixed-schedule --no-fixed-schedule")
    assert said.startswith("--no-fixed-schedule is specified multiple times, first as --fixed-schedule")


# The compatibility matrix: what each mode says to an option: + takes it, - refuses it; a letter is the mode that it selects.

MODES = {"burst": BURST, "request_rate": RATE, "fixed_schedule": FIXED, "user_centric": USERS}
MATRIX = [
    # typed beside the mode's own options             burst, rate, fixed, users
    ("--concurrency 3", "++++"),
    ("--streaming --prefill-concurrency 2", "++++"),
    ("--request-rate 5", "r+--"),
    ("--arrival-pattern constant", "-+--"),
    ("--arrival-pattern gamma --arrival-smoothness 2", "-+--"),
    ("--arrival-smoothness 2", "-+--"),
    ("--arrival-pattern poisson --arrival-smoothness 2", "----"),
    ("--user-centric-rate 2", "---+"),
    ("--num-users 4", "---+"),
    ("--fixed-schedule --input-file trace.jsonl", "f-+-"),
    ("--fixed-schedule-auto-offset", "--+-"),
    ("--no-fixed-schedule-auto-offset", "--+-"),
    ("--fixed-schedule-start-offset 2", "--+-"),
    ("--fixed-schedule-end-offset 4", "--+-"),
    ("--request-count 20", "++++"),
    ("--request-count 3", "-++-"),
    ("--num-sessions 20", "++++"),
    ("--num-sessions 3", "-++-"),
    ("--benchmark-duration 3", "++++"),
    ("--benchmark-grace-period 3", "----"),
    ("--benchmark-duration 3 --benchmark-grace-period 3", "++++"),
    ("--concurrency-ramp-duration 3", "+---"),
    ("--concurrency 3 --concurrency-ramp-duration 3", "++++"),
    ("--streaming --prefill-concurrency-ramp-duration 3", "----"),
    ("--streaming --prefill-concurrency 2 --prefill-concurrency-ramp-duration 3", "++++"),
    ("--request-rate-ramp-duration 3", "-+--"),
    ("--warmup-request-count 2", "++++"),
    ("--num-warmup-sessions 2", "++++"),
    ("--warmup-duration 2 --warmup-grace-period 1", "++++"),
    ("--warmup-duration 2 --warmup-concurrency 2 --warmup-concurrency-ramp-duration 1", "++++"),
    ("--warmup-duration 2 --warmup-request-rate 3 --warmup-arrival-pattern constant", "++++"),
    ("--warmup-duration 2 --warmup-request-rate 3 --warmup-request-rate-ramp-duration 1", "++++"),
    ("--warmup-duration 2 --streaming --warmup-prefill-concurrency 2 --warmup-prefill-concurrency-ramp-duration 1", "++++"),
    ("--request-cancellation-rate 10", "++++"),
    ("--request-cancellation-rate 10 --request-cancellation-delay 1", "++++"),
    ("--dataset-sampling-strategy sequential", "++++"),
    ("--dataset-sampling-strategy random", "++-+"),
    ("--conversation-turn-delay-ratio 0.5", "++++"),
]  # fmt: skip


STOPS = {"--request-count", "--num-sessions"}


def beside(mode: str, typed: str) -> str:
    """The mode's own options and *typed*, which wins where both say the same; there is one count to stop at."""
    flags = set(typed.split())
    own = MODES[mode].replace("--fixed-schedule ", "").split()
    kept = [
        f"{flag} {value}" for flag, value in zip(own[::2], own[1::2], strict=True)
        if flag not in flags and not (flag in STOPS and flags & STOPS)
    ]  # fmt: skip
    replay = ["--fixed-schedule"] if mode == "fixed_schedule" and "--fixed-schedule" not in flags else []
    return " ".join([*replay, *kept, typed])


@pytest.mark.parametrize("mode", list(MODES))
@pytest.mark.parametrize(("typed", "cells"), MATRIX)
def test_every_cell_of_the_compatibility_matrix(mode: str, typed: str, cells: str) -> None:
    cell = cells[list(MODES).index(mode)]
    if cell == "-":
        assert refusals(beside(mode, typed))
    else:
        assert profiling(beside(mode, typed)).schedule == {"r": "request_rate", "f": "fixed_schedule"}.get(cell, mode)


# What phases come to


@pytest.mark.parametrize(("line", "count", "sessions", "duration_ns"), [
    ("--concurrency 3", 10, None, None), ("--concurrency 8", 16, None, None), ("", 10, None, None),
    ("--streaming --prefill-concurrency 8", 16, None, None),
    ("--request-rate 5", 10, None, None), ("--request-rate 5 --concurrency 50", 10, None, None),
    ("--request-rate-series rates.json", None, None, 60_000_000_000),
    (FIXED, None, None, None), (f"{FIXED} --request-count 2", 2, None, None),
    (USERS, 20, None, None),
    ("--concurrency 3 --benchmark-duration 2 --request-count 9", 9, None, 2_000_000_000),
    ("--concurrency 3 --benchmark-duration 2 --num-sessions 9", None, 9, 2_000_000_000),
])  # fmt: skip
def test_what_ends_a_phase(line: str, count: int | None, sessions: int | None, duration_ns: int | None) -> None:
    phase = profiling(line)
    assert (phase.request_count, phase.session_count, phase.duration_ns) == (count, sessions, duration_ns)


@pytest.mark.parametrize(("line", "grace_ns"), [
    (f"{BURST} --benchmark-duration 2", 30_000_000_000),
    (f"{BURST} --benchmark-duration 2 --benchmark-grace-period 0", 0),
    (f"{BURST} --benchmark-duration 2 --benchmark-grace-period inf", None),
    (f"{USERS} --benchmark-duration 2", None),
    (f"{USERS} --benchmark-duration 2 --benchmark-grace-period 3", 3_000_000_000),
    (USERS, None),
])  # fmt: skip
def test_users_are_waited_for_where_no_grace_is_given(line: str, grace_ns: int | None) -> None:
    assert profiling(line).grace_ns == grace_ns


@pytest.mark.parametrize(("line", "concurrency", "prefill"), [
    ("", 1, None), ("--request-rate 5", None, None), (FIXED, None, None), (USERS, None, None),
    ("--streaming --prefill-concurrency 8", None, 8), ("--streaming --prefill-concurrency 3 --concurrency 8", 8, 3),
    ("--streaming --prefill-concurrency 3 --request-rate 8", None, 3), (f"{FIXED} --concurrency 9", 9, None),
])  # fmt: skip
def test_without_pacing_something_holds_requests_back(line: str, concurrency: int | None, prefill: int | None) -> None:
    phase = profiling(line)
    assert (phase.concurrency, phase.prefill_concurrency) == (concurrency, prefill)


def test_users_make_their_turns_at_the_rate() -> None:
    phase = profiling(USERS)
    assert (phase.users, phase.rate, phase.pattern, phase.replay) == (4, 2.0, None, None)


@pytest.mark.parametrize(("line", "replay"), [
    ("", Replay()),
    ("--no-fixed-schedule-auto-offset", Replay(auto_offset=False)),
    ("--fixed-schedule-start-offset 2", Replay(auto_offset=False, start_ms=2)),
    ("--fixed-schedule-end-offset 4", Replay(end_ms=4)),
    ("--fixed-schedule-start-offset 0 --fixed-schedule-end-offset 4", Replay(auto_offset=False, start_ms=0, end_ms=4)),
])  # fmt: skip
def test_a_trace_begins_at_its_first_request_unless_a_start_is_given(line: str, replay: Replay) -> None:
    found = plan(f"{FIXED} {line}")
    assert found.load.phases[0].replay == replay
    assert found.data.sampling == "sequential", "the order is the trace's"


def test_a_series_of_rates_is_read_and_paces() -> None:
    phase = profiling("--request-rate-series rates.json --arrival-pattern constant")
    assert (phase.rate, phase.rate_series, phase.pattern) == (None, ((0.0, 5.0), (60.0, 50.0)), "constant")
    assert phase.paced


@pytest.mark.parametrize(("content", "said"), [
    (None, "No such file"), ("{", "not a JSON list of points"), ('[[0, "x"]]', "not a JSON list of points"),
    ("[]", "has no points"), ("[[0, 0]]", "every rate is 0"), ("[[0, 5], [0, 6]]", "point 2 at 0 s is not after"),
    ("[[-1, 5]]", "point 1 is [-1, 5]"), ("[[0, -5]]", "point 1 is [0, -5]"), ("[[0, 1, 2]]", "not a JSON list of points"),
])  # fmt: skip
def test_a_series_that_cannot_be_is_refused_with_its_file_and_point(content: str | None, said: str, folder: Path) -> None:
    if content is not None:
        (folder / "mine.json").write_text(content)
    (found,) = refusals("--request-rate-series mine.json")
    assert found.startswith("--request-rate-series: mine.json")
    assert said in found


@pytest.mark.parametrize(("line", "ramps"), [
    ("--concurrency 8 --concurrency-ramp-duration 3", (3, None, None)),
    ("--concurrency-ramp-duration 3", (None, None, None)),
    ("--concurrency 1 --concurrency-ramp-duration 3", (None, None, None)),
    ("--streaming --concurrency 8 --prefill-concurrency 2 --prefill-concurrency-ramp-duration 4", (None, 4, None)),
    ("--request-rate 5 --request-rate-ramp-duration 0.5", (None, None, 0.5)),
])  # fmt: skip
def test_what_has_somewhere_to_rise_to_rises(line: str, ramps: tuple[float | None, ...]) -> None:
    found = plan(line)
    phase = found.load.phases[-1]
    ns = (phase.concurrency_ramp_ns, phase.prefill_ramp_ns, phase.rate_ramp_ns)
    assert ns == tuple(None if seconds is None else round(seconds * 1e9) for seconds in ramps)
    assert list(found.plugins.ramps) == (["linear"] if any(ramps) else [])


def test_the_curve_of_a_ramp_is_chosen_by_name() -> None:
    found = plan("--concurrency 8 --concurrency-ramp-duration 3 --ramp Exponential")
    assert (found.load.phases[0].ramp, found.plugins.ramps["exponential"].name) == ("exponential", "exponential")
    (said,) = refusals("--concurrency 8 --concurrency-ramp-duration 3 --ramp expo")
    assert said.startswith("--ramp: no ramp plugin is called 'expo'")


def test_a_ramp_with_nothing_to_raise_is_said(caplog: pytest.LogCaptureFixture) -> None:
    profiling("--concurrency-ramp-duration 3")
    assert "--concurrency-ramp-duration has nothing to ramp without --concurrency" in caplog.text


def test_a_warmup_alone_takes_nothing_from_profiling() -> None:
    ramps = "--concurrency-ramp-duration 2 --request-rate-ramp-duration 2"
    line = f"--request-rate 5 --arrival-smoothness 3 --concurrency 9 {ramps}"
    lent, alone = (warmup(f"{line} --warmup-request-count 4 {more}") for more in ("", "--warmup-alone"))
    assert (lent.schedule, lent.rate, lent.concurrency, lent.pattern) == ("request_rate", 5.0, 9, "gamma")
    assert (alone.schedule, alone.rate, alone.concurrency, alone.pattern) == ("burst", None, 1, None)
    assert lent.concurrency_ramp_ns == lent.rate_ramp_ns == 2_000_000_000
    assert alone.concurrency_ramp_ns is alone.rate_ramp_ns is None
    paced = warmup(f"{line} --warmup-request-count 4 --warmup-alone --warmup-request-rate 2 --warmup-arrival-pattern gamma")
    assert (paced.rate, paced.pattern, paced.smoothness, paced.concurrency) == (2.0, "gamma", 1.0, None)
    wider = "--warmup-request-count 9 --warmup-alone --warmup-request-rate 5 --warmup-prefill-concurrency 4"
    assert warmup(f"--streaming --concurrency 2 {wider}").prefill_concurrency == 4


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--warmup-alone", "--warmup-alone --warmup-request-count"),
        (
            "--request-rate 5 --warmup-request-count 4 --warmup-alone --warmup-arrival-pattern constant",
            "--warmup-arrival-pattern --warmup-request-rate",
        ),
        (
            "--arrival-smoothness 2 --warmup-duration 4 --warmup-alone --warmup-request-rate 5 --warmup-arrival-pattern gamma",
            "--arrival-smoothness --request-rate",
        ),
    ],
)
def test_what_a_warmup_alone_lacks_is_not_profilings_to_give(line: str, words: str) -> None:
    (said,) = refusals(line)
    assert all(word in said for word in words.split())


@pytest.mark.parametrize(("line", "share", "delay_ns"), [
    ("", 0.0, 0), ("--request-cancellation-rate 0 --request-cancellation-delay 1", 0.0, 1_000_000_000),
    ("--request-cancellation-rate 12.5", 0.125, 0),
    ("--request-cancellation-rate 100 --request-cancellation-delay 0.5", 1.0, 500_000_000),
])  # fmt: skip
def test_cancellation_is_a_share_and_never_the_warmups(line: str, share: float, delay_ns: int) -> None:
    before, phase = plan(f"{BURST} --warmup-request-count 2 {line}").load.phases
    assert (phase.cancel_share, phase.cancel_delay_ns) == (share, delay_ns)
    assert (before.cancel_share, before.cancel_delay_ns) == (0.0, 0)


# What a warmup inherits


@pytest.mark.parametrize(("line", "expected"), [
    (BURST, ("burst", None, None, 4)),
    ("--request-count 9 --streaming --prefill-concurrency 3", ("burst", None, None, None)),
    (RATE, ("request_rate", 5.0, "poisson", None)),
    (f"{RATE} --arrival-pattern constant", ("request_rate", 5.0, "constant", None)),
    (f"{RATE} --warmup-arrival-pattern constant", ("request_rate", 5.0, "constant", None)),
    (f"{RATE} --arrival-smoothness 3", ("request_rate", 5.0, "gamma", None)),
    (f"{RATE} --warmup-request-rate 2 --warmup-concurrency 3", ("request_rate", 2.0, "poisson", 3)),
    (f"{BURST} --warmup-request-rate 2", ("request_rate", 2.0, "poisson", 4)),
    (FIXED, ("burst", None, None, 1)),
    (f"{FIXED} --concurrency 7", ("burst", None, None, 7)),
    (f"{FIXED} --warmup-request-rate 2", ("request_rate", 2.0, "poisson", None)),
    (USERS, ("burst", None, None, 1)),
    (f"{USERS} --concurrency 9", ("burst", None, None, 9)),
    ("--request-rate-series rates.json", ("burst", None, None, 1)),
])  # fmt: skip
def test_a_warmup_is_a_burst_or_paced_whatever_profiling_is(line: str, expected: tuple[Any, ...]) -> None:
    phase = warmup(f"{line} --num-warmup-sessions 3")
    assert (phase.schedule, phase.rate, phase.pattern, phase.concurrency) == expected
    assert (phase.users, phase.replay, phase.rate_series) == (None, None, None)


@pytest.mark.parametrize(("line", "ramps"), [
    ("", (3, 4, 5)),
    ("--warmup-concurrency-ramp-duration 1", (1, 4, 5)),
    ("--warmup-prefill-concurrency-ramp-duration 1", (3, 1, 5)),
    ("--warmup-request-rate-ramp-duration 1", (3, 4, 1)),
    ("--warmup-concurrency 1 --warmup-prefill-concurrency 1", (None, None, 5)),
])  # fmt: skip
def test_a_warmup_rises_as_profiling_does_unless_it_is_told(line: str, ramps: tuple[int | None, ...]) -> None:
    phase = warmup(
        f"--request-rate 5 --concurrency 8 --streaming --prefill-concurrency 2 --concurrency-ramp-duration 3 "
        f"--prefill-concurrency-ramp-duration 4 --request-rate-ramp-duration 5 --warmup-request-count 2 {line}"
    )
    ns = (phase.concurrency_ramp_ns, phase.prefill_ramp_ns, phase.rate_ramp_ns)
    assert ns == tuple(None if seconds is None else seconds * 10**9 for seconds in ramps)


def test_a_warmup_may_have_limits_of_its_own() -> None:
    phase = warmup(f"{BURST} --streaming --prefill-concurrency 2 --warmup-duration 2 --warmup-grace-period 1 "
                   "--warmup-concurrency 9 --warmup-prefill-concurrency 7")  # fmt: skip
    assert (phase.concurrency, phase.prefill_concurrency) == (9, 7)
    assert (phase.duration_ns, phase.grace_ns) == (2 * 10**9, 10**9)


# URLs, orders, connections


@pytest.mark.parametrize(("line", "urls", "weights", "strategy"), [
    ("--url http://a", ("http://a",), (1.0,), None),
    ("--url http://a,http://b", ("http://a", "http://b"), (1.0, 1.0), "round_robin"),
    ("--url http://a,http://b --url-strategy weighted", ("http://a", "http://b"), (1.0, 1.0), "weighted"),
    ("--url http://a:8000=3 http://b/v1=0.5 --url-strategy weighted", ("http://a:8000", "http://b/v1"), (3.0, 0.5), "weighted"),
    ("--url http://a=3,http://b --url-strategy least-in-flight", ("http://a", "http://b"), (3.0, 1.0), "least_in_flight"),
    ("--url http://a?v=3,http://b/x%3D3", ("http://a?v=3", "http://b/x%3D3"), (1.0, 1.0), "round_robin"),
])  # fmt: skip
def test_urls_may_carry_weights(line: str, urls: tuple[str, ...], weights: tuple[float, ...], strategy: str | None) -> None:
    found = plan(f"{BURST} {line}")
    assert (found.target.urls, found.target.url_weights) == (urls, weights)
    assert (None if found.plugins.url_strategy is None else found.plugins.url_strategy.name) == strategy


@pytest.mark.parametrize(("line", "said"), [
    ("--url http://a=0,http://b --url-strategy weighted", "--url: the weight 0 of 'http://a' is not a number above 0"),
    ("--url http://a=-1,http://b --url-strategy weighted", "--url: the weight -1 of 'http://a'"),
    ("--url http://a=1.2.3,http://b --url-strategy weighted", "--url: the weight 1.2.3 of 'http://a'"),
    ("--url http://a,http://b --url-strategy random", "--url-strategy: no url strategy plugin is called 'random'"),
    ("--url-strategy random", "--url-strategy: no url strategy plugin is called 'random'"),
    ("--dataset-sampling-strategy shufle", "--dataset-sampling-strategy: no sampler plugin is called 'shufle'"),
])  # fmt: skip
def test_a_weight_or_a_name_that_cannot_be_is_refused(line: str, said: str) -> None:
    (found,) = refusals(f"{BURST} {line}")
    assert found.startswith(said)


def test_a_strategy_counting_per_worker_is_told_with_several_workers(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan(f"{BURST} --url http://a,http://b --url-strategy least_in_flight")
    assert caplog.text == ""
    monkeypatch.setenv("AIPERF_WORKERS", "3")
    plan(f"{BURST} --url http://a,http://b --url-strategy least_in_flight")
    assert "least_in_flight goes by what each of the 3 workers has in flight; --workers-max 1 would count all" in caplog.text


@pytest.mark.parametrize(("line", "reuse", "sticky"), [
    ("", True, False), ("--connection-reuse-strategy pooled", True, False), ("--connection-reuse-strategy never", False, False),
    ("--connection-reuse-strategy sticky-user-sessions", True, True),
])  # fmt: skip
def test_connections_are_shared_or_a_sessions_own_or_a_requests_own(line: str, reuse: bool, sticky: bool) -> None:
    found = plan(f"{BURST} {line}")
    assert (found.target.reuse, found.target.sticky) == (reuse, sticky)


def test_the_rest_of_the_load_reaches_the_plan() -> None:
    found = plan(f"{BURST} --session-delay-ratio 0.5 --failed-request-threshold 0.1 --dataset-sampling-strategy shuffle")
    assert (found.data.delay_ratio, found.load.failed_threshold, found.data.sampling) == (0.5, 0.1, "shuffle")
    assert set(found.plugins.samplers) == {"sequential", "shuffle", "random"}


@pytest.mark.parametrize(("line", "name"), [
    (BURST, "m-openai-chat-concurrency4"),
    (f"{RATE} --concurrency 4", "m-openai-chat-concurrency4-request_rate5.0"),
    (USERS, "m-openai-chat-user_centric-users4-qps2.0"),
    (f"{USERS} --concurrency 3", "m-openai-chat-user_centric-users4-qps2.0"),
    (FIXED, "m-openai-chat-fixed_schedule"),
    ("--request-rate-series rates.json", "m-openai-chat-request_rate_series"),
])  # fmt: skip
def test_the_directory_is_named_after_the_mode(line: str, name: str) -> None:
    assert Path(plan(line).output.artifacts).name == name


@pytest.mark.parametrize(("line", "said"), [
    (BURST, "concurrency 4, 20 requests"),
    (f"{RATE} --arrival-pattern constant", "5 requests/s constant, 20 requests"),
    (f"{FIXED} --benchmark-duration 2", "a recorded trace, 2 s"),
    (f"{USERS} --num-sessions 8".replace("--request-count 20", ""), "4 users, 2 requests/s, 8 sessions"),
    ("--request-rate-series rates.json", "a rate of 2 points poisson, 60 s"),
    (FIXED, "a recorded trace"),
])  # fmt: skip
def test_the_target_of_a_phase_is_a_readable_line(line: str, said: str) -> None:
    assert target(profiling(line)) == f"target: {said}"


# How many processes


@pytest.mark.parametrize(("line", "workers"), [
    ("--request-rate 70000", 4), ("--request-rate 70000 --streaming --prefill-concurrency 2", 2),
    ("--concurrency 12000 --benchmark-duration 1", 3),
    ("--user-centric-rate 5 --num-users 12000 --benchmark-duration 9", 3),
    ("--user-centric-rate 70000 --num-users 3 --benchmark-duration 9", 3),
    (FIXED, 1),
])  # fmt: skip
def test_workers_come_from_rates_limits_and_users(line: str, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "cpus", lambda: 64)
    assert plan(line).run.workers == workers


@pytest.mark.parametrize(("variable", "value", "workers"), [
    ("AIPERF_WORKER_CPU_UTILIZATION_FACTOR", "0.25", 15), ("AIPERF_WORKER_MAX_WORKERS_CAP", "7", 7),
])  # fmt: skip
def test_the_environment_says_how_much_of_the_machine_workers_may_take(
    variable: str, value: str, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "cpus", lambda: 64)
    monkeypatch.setenv(variable, value)
    assert plan("--request-rate 1e9").run.workers == workers


@pytest.mark.parametrize(("variable", "value", "allowed"), [
    ("AIPERF_WORKER_CPU_UTILIZATION_FACTOR", "2", "a number from 0.05 to 1"),
    ("AIPERF_WORKER_CPU_UTILIZATION_FACTOR", "nan", "a number from 0.05 to 1"),
    ("AIPERF_WORKER_MAX_WORKERS_CAP", "none", "a whole number from 1 to 1024"),
    ("AIPERF_RECORD_PROCESSOR_SCALE_FACTOR", "0", "a whole number from 1 to 100"),
    ("AIPERF_SERVICE_START_TIMEOUT", "soon", "a number from 1 to 100000"),
    ("AIPERF_TIMING_CANCEL_DRAIN_TIMEOUT", "-1", "a number from 1 to 300"),
    ("AIPERF_SERVICE_WARMUP_PROGRESS_LOG_INTERVAL", "0", "a number from 0.1 to 3600"),
    ("AIPERF_HTTP_TCP_KEEPCNT", "0", "a whole number from 1 to 127"),
    ("AIPERF_HTTP_SO_SNDBUF", "10M", "a whole number from 1024 to 1073741824"),
    ("AIPERF_UI_REALTIME_METRICS_INTERVAL", "1e9", "a number from 0.1 to 1000"),
])  # fmt: skip
def test_a_variable_out_of_range_is_one_line(variable: str, value: str, allowed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)
    assert refusals(BURST) == [f"{variable} is {value!r}; it must be {allowed}"]


def test_bad_variables_are_reported_with_the_options_that_contradict(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = {"AIPERF_HTTP_IP_VERSION": "5", "AIPERF_HTTP_TRUST_ENV": "q", "AIPERF_WORKERS": "x"}
    for variable, value in bad.items():
        monkeypatch.setenv(variable, value)
    said = [each.partition(" ")[0] for each in refusals(f"{BURST} --benchmark-grace-period 3")]
    assert sorted(said) == sorted([*bad, "--benchmark-grace-period"])


@pytest.mark.parametrize(("value", "start_s"), [("30", 30), ("30s", 30), ("5m", 300), ("1.5 h", 5400), ("2500ms", 2.5)])
def test_seconds_of_a_variable_may_have_a_unit(value: str, start_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_SERVICE_START_TIMEOUT", value)
    assert environment.start_s() == start_s


def test_what_the_environment_leaves_open(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("SERVICE_START_TIMEOUT", "HTTP_IP_VERSION", "HTTP_SO_RCVBUF", "HTTP_SO_SNDBUF"):
        monkeypatch.delenv(f"AIPERF_{variable}", raising=False)
    assert environment.start_s() == 60
    assert environment.ip_version() == "auto"
    sizes = {option for level, option, _ in environment.socket_options() if level == socket.SOL_SOCKET}
    assert not sizes & {socket.SO_RCVBUF, socket.SO_SNDBUF}, "the system's own grow as needed"


@pytest.mark.parametrize(
    ("line", "schedule"),
    [
        ("--scheduling-mode burst --concurrency 3", "burst"),
        ("--scheduling-mode request-rate --request-rate 5", "request_rate"),
        ("--scheduling-mode Request_Rate --request-rate-series rates.json", "request_rate"),
        ("--scheduling-mode user_centric --user-centric-rate 5 --num-users 3 --request-count 9", "user_centric"),
        ("--scheduling-mode fixed_schedule --input-file trace.jsonl --custom-dataset-type trace", "fixed_schedule"),
        ("--scheduling-mode burst --input-file trace.jsonl --custom-dataset-type trace", "burst"),
        ("--scheduling-mode metronome", "metronome"),
        ("--scheduling-mode metronome --request-rate 5 --arrival-pattern constant", "metronome"),
    ],
)
def test_the_scheduling_mode_selects_the_schedule(line: str, schedule: str) -> None:
    metronome = row("schedules", "metronome")
    made = plan(line, metronome)
    assert made.load.phases[-1].schedule == schedule and schedule in made.plugins.schedules


def test_a_plugins_schedule_has_the_rate_and_no_limit_of_its_own() -> None:
    metronome = row("schedules", "metronome")
    plain = plan("--scheduling-mode metronome", metronome).load.phases[-1]
    assert (plain.rate, plain.pattern, plain.concurrency) == (None, None, None)
    assert section(plain)["type"] == "metronome"
    rated = plan("--scheduling-mode metronome --request-rate 5 --concurrency 2", metronome).load.phases[-1]
    assert (rated.rate, rated.pattern, rated.concurrency) == (5, "poisson", 2)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("--scheduling-mode burst --request-rate 5",
         "--scheduling-mode burst and --request-rate exclude each other: --request-rate selects the mode request_rate"),
        ("--scheduling-mode user_centric --request-rate 5",
         "--scheduling-mode user_centric and --request-rate exclude each other: --request-rate selects the mode request_rate"),
        ("--scheduling-mode metronome --user-centric-rate 5 --num-users 2 --request-count 4",
         "--scheduling-mode metronome and --user-centric-rate exclude each other: --user-centric-rate selects the mode"
         " user_centric"),
        ("--scheduling-mode request_rate --fixed-schedule --input-file trace.jsonl --custom-dataset-type trace",
         "--scheduling-mode request_rate and --fixed-schedule exclude each other: --fixed-schedule selects the mode"
         " fixed_schedule"),
        ("--scheduling-mode fixed_schedule --no-fixed-schedule --input-file trace.jsonl --custom-dataset-type trace",
         "--scheduling-mode fixed_schedule and --no-fixed-schedule exclude each other"),
        ("--scheduling-mode request_rate", "--scheduling-mode request_rate needs --request-rate: it starts requests at a rate"),
        ("--scheduling-mode user_centric",
         "--scheduling-mode user_centric needs --user-centric-rate: it starts requests at a rate over all users"),
        ("--scheduling-mode fixed_schedule",
         "--scheduling-mode fixed_schedule needs --input-file: a file with timestamps says when each request starts"),
        ("--scheduling-mode surge", "--scheduling-mode: no schedule plugin is called 'surge'"),
    ],
)  # fmt: skip
def test_a_contradiction_to_the_scheduling_mode_is_refused(line: str, sentence: str) -> None:
    with pytest.raises(ConfigErrors) as caught:
        plan(line, row("schedules", "metronome"))
    assert sentence in [error.message for error in caught.value.errors]


TAPE = row("schedules", "tape", follows="trace")
TIDE = row("schedules", "tide", follows="rate")
MARKS = row("samplers", "marks", in_order=True)


@pytest.mark.parametrize("line", [
    "--input-file trace.jsonl --request-rate 5", "--input-file trace.jsonl --arrival-pattern poisson", "",
    "--input-file trace.jsonl --dataset-sampling-strategy shuffle",
    "--input-file trace.jsonl --user-centric-rate 2 --num-users 4",
    "--input-file trace.jsonl --no-fixed-schedule", "--input-file trace.jsonl --num-users 3",
])  # fmt: skip
def test_a_strangers_schedule_has_the_rules_of_what_it_follows(line: str) -> None:
    ours = refusals(f"--scheduling-mode fixed_schedule {line}")
    theirs = refusals(f"--scheduling-mode tape {line}", TAPE)
    assert [text.replace("mode tape", "mode fixed_schedule") for text in theirs] == ours


def test_a_strangers_schedule_gets_what_it_follows() -> None:
    replayed = plan("--scheduling-mode tape --input-file trace.jsonl --dataset-sampling-strategy marks", TAPE, MARKS)
    phase = replayed.load.phases[-1]
    assert (phase.schedule, phase.replay is not None, phase.request_count) == ("tape", True, None)
    phase = plan("--scheduling-mode tide --request-rate 5 --request-count 9", TIDE).load.phases[-1]
    assert (phase.schedule, phase.rate, phase.pattern) == ("tide", 5.0, "poisson")
    assert refusals("--scheduling-mode tide", TIDE) == [
        text.replace("request_rate", "tide") for text in refusals("--scheduling-mode request_rate")
    ]
