from itertools import chain

import numpy as np
import pytest
from aiperf import Needs, RecordBatch
from aiperf.sdk import raw_values
from aiperf.sdk.columns import ragged
from aiperf.sdk.raw_values import RawValueCollector, RawValues
from aiperf.testing import AnalysisContract
from aiperf_metric_concurrency import EffectiveConcurrency, TokenFlow
from aiperf_metric_concurrency.curves import Curve, ratio, spans, steps, weighted
from aiperf_metric_concurrency.pieces import pieces_of
from aiperf_metric_concurrency.spread import Spread
from aiperf_testing.manifests import check_row
from hypothesis import given
from hypothesis import strategies as st

ABSENT = float("nan")
S = 1e9


def curve(*points: tuple[float, float]) -> Curve:
    return Curve(np.array([at for at, _ in points], dtype=float), np.array([value for _, value in points], dtype=float))


def array(*values: float):
    return np.array(values, dtype=float)


def statistics(*where):
    """Those of one curve between two instants."""
    spread, part = Spread(), weighted(*where)
    if part is not None:
        spread.add(*part)
    return spread.statistics()


def test_events_in_any_order_make_one_curve():
    found = steps((array(30, 10, 20, 10, 20), array(-3, 1, 2, 2, -2)))
    assert list(zip(found.at_ns, found.values, strict=True)) == [(10, 3), (20, 3), (30, 0)]


def test_what_adding_and_taking_away_leaves_is_nothing():
    found = steps((array(1, 2, 3, 4), array(0.1, 0.2, -0.1, -0.2)))
    assert found.values[-1] == 0


def test_a_span_whose_end_nobody_knows_never_ends():
    assert steps(spans(array(0, 5), array(10, ABSENT), array(1, 1))).values.tolist() == [1, 2, 1]


def test_a_ratio_is_zero_where_there_is_nothing_to_divide_by():
    found = ratio(curve((0, 6), (20, 4)), curve((5, 2), (15, 0), (25, 4)))
    assert list(zip(found.at_ns, found.values, strict=True)) == [(0, 0), (5, 3), (15, 0), (20, 0), (25, 1)]


# 0 from 0 to 10, 4 to 30, 2 to 90, 0 to 100.
STAIRS = curve((10, 4), (30, 2), (90, 0))


def test_statistics_weight_a_value_by_how_long_it_holds():
    found = statistics(STAIRS, 0, 100)
    assert found is not None
    # (4·20 + 2·60) / 100; squares (16·20 + 4·60) / 100 = 5.6, less 2²
    assert (found["avg"], found["min"], found["max"]) == (2.0, 0.0, 4.0)
    assert found["std"] == pytest.approx(1.6**0.5)
    # 0 for 20 % of the time, 2 for 60 %, 4 for 20 %
    assert (found["p50"], found["p90"], found["p99"]) == (2.0, 4.0, 4.0)


def test_percentiles_that_are_asked_for_join_the_usual_ones():
    spread = Spread()
    spread.add(*weighted(STAIRS, 0, 100))
    found = spread.statistics((19.9, 50, 80.1))
    assert [name for name in found if name[0] == "p"] == ["p19.9", "p50", "p80.1", "p90", "p95", "p99"]
    assert (found["p19.9"], found["p50"], found["p80.1"]) == (0.0, 2.0, 4.0)


def test_a_percentile_weights_values_by_their_duration():
    assert statistics(curve((0, 1), (90, 7)), 0, 100)["p90"] == 1
    assert statistics(curve((0, 1), (89, 7)), 0, 100)["p90"] == 7


@pytest.mark.parametrize("shape", ["spread", "few", "far"])
def test_percentiles_of_many_values_are_those_of_all_of_them_sorted(shape):
    random = np.random.default_rng(1)
    values, widths = random.exponential(100, 20_000), random.uniform(1, 1000, 20_000)
    if shape == "few":
        values = np.floor(values / 50)
    elif shape == "far":
        values[7] = 1e15
    spread = Spread()
    spread.add(values.copy(), widths.copy())
    order = np.argsort(values, kind="stable")
    shares = np.cumsum(widths[order]) / widths.sum()
    for percent in (50, 90, 95, 99):
        assert spread.statistics()[f"p{percent}"] == values[order][np.searchsorted(shares, percent / 100)]


def test_changes_at_one_instant_are_added_in_one_order():
    at, rises = array(*[5] * 6, *[9] * 6), array(*[0.1, 0.2, 0.3, 1e9, -1e9, 0.7] * 2)
    turned = steps((at[::-1].copy(), rises[::-1].copy()))
    assert steps((at, rises)).values.tolist() == turned.values.tolist()


def test_a_window_sees_what_holds_in_it():
    found = statistics(STAIRS, 20, 40)
    assert (found["avg"], found["min"], found["max"]) == (3.0, 2.0, 4.0)
    assert statistics(STAIRS, 200, 300)["max"] == 0
    assert statistics(STAIRS, 20, 20) is None


def test_a_closed_gate_excludes_its_time():
    assert statistics(STAIRS, 0, 100, curve((20, 1), (40, 0), (60, 1), (70, 0)))["avg"] == (4 * 10 + 2 * 10 + 2 * 10) / 30
    assert statistics(STAIRS, 0, 100, curve((10, 0))) is None


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 500), st.integers(1, 9)), min_size=1, max_size=20))
def test_the_mean_times_the_time_is_what_the_spans_hold(rows):
    begin, width, height = (array(*column) for column in zip(*rows, strict=True))
    found = statistics(steps(spans(begin, begin + width, height)), 0, 2000)
    assert found["avg"] * 2000 == pytest.approx((width * height).sum())
    assert found["min"] <= found["p50"] <= found["p90"] <= found["p99"] <= found["max"]


def results(tmp_path, analysis, window, rows, split=1, columns=None):
    """What the analysis says of requests, see :func:`raw_values_of`."""
    (found,) = analysis.results(raw_values_of(tmp_path, analysis, rows, split, columns), [(window[0] * S, window[1] * S)])
    return {result.tag: result for result in found}


def raw_values_of(tmp_path, analysis, rows, split, columns=None):
    """Requests, from several reducers: (start, first token, end, prompt, output, instants), times in s; further *columns*."""
    keepers = [RawValueCollector(tmp_path / f"kept-{i}", analysis.keeps, analysis.lists) for i in range(split)]
    for i, part in enumerate(rows[i::split] for i in range(split)):
        began, first, ended, prompt, output = (array(*(row[k] for row in part)) for k in range(5))
        instants = [[at * S for at in row[5]] for row in part]
        batch = RecordBatch(
            {
                "started_ns": began * S, "ended_ns": ended * S, "chunk_ns": ragged(instants, instants),
                "first_token_ns": first * S, "last_byte_ns": np.full(len(part), ABSENT),
                "outcome": np.isnan(first).astype(float), **(columns or {}),
            },
            ~np.isnan(first),
        )  # fmt: skip
        values = {
            "time_to_first_token": (first - began) * S,
            "input_sequence_length": prompt,
            "output_sequence_length": output,
        }
        keepers[i].add(batch, values)
    return RawValues([keeper.dump() for keeper in keepers])


# One request reads 100 tokens in 2 s and writes 5 in 4 s, two of them after 1 s and two after 3 more; another fails after 1 s.
ROWS = [
    (0, 2, 6, 100, 5, [2, 3, 6]),
    (1, ABSENT, 2, 50, ABSENT, []),
]


def test_without_a_first_token_there_is_no_flow_of_tokens(tmp_path):
    assert results(tmp_path, TokenFlow(), (0, 10), [ROWS[1], ROWS[1]]) == {}
    (folder := tmp_path / "alone").mkdir()
    assert results(folder, EffectiveConcurrency(), (0, 10), [ROWS[1]])["effective_concurrency"].stats["avg"] == 0.1


def test_a_request_ends_where_its_record_does(tmp_path):
    # An error after 2 s was over at 6, when it was given up; one that the end of the run cut off was in flight until then.
    columns = {"last_byte_ns": array(6, 2, 2) * S, "outcome": array(0, 1, 3)}
    rows = [ROWS[0], (0, ABSENT, 6, 50, ABSENT, []), (0, ABSENT, 6, 50, ABSENT, [])]
    found = results(tmp_path, EffectiveConcurrency(), (0, 10), rows, columns=columns)
    assert found["effective_concurrency"].stats["avg"] == pytest.approx((6 + 2 + 6) / 10)


def test_merged_first_content_bounds_requests_in_prefill_and_in_decode(tmp_path):
    columns = {"first_low_ns": array(1, ABSENT) * S, "first_high_ns": array(3, ABSENT) * S}
    found = results(tmp_path, TokenFlow(), (0, 10), ROWS, columns=columns)
    for side, lower, upper in (("prefill", 0.1, 0.3), ("decode", 0.3, 0.5)):
        result = found[f"effective_{side}_concurrency"]
        assert [each["avg"] for each in (result.lower, result.stats, result.upper)] == pytest.approx(
            [lower, WORKED[result.tag], upper]
        )
    assert [tag for tag, result in found.items() if result.lower] == [
        "effective_decode_concurrency", "effective_prefill_concurrency",
    ]  # fmt: skip
    exact = {"first_low_ns": array(2, ABSENT) * S, "first_high_ns": array(2, ABSENT) * S}
    (folder := tmp_path / "exact").mkdir()
    assert not any(result.lower for result in results(folder, TokenFlow(), (0, 10), ROWS, columns=exact).values())


WORKED = {
    "effective_concurrency": 0.7,  # 6 s and 1 s of 10 s
    "effective_prefill_concurrency": 0.2,  # 2 s of 10 s
    "effective_decode_concurrency": 0.4,
    "effective_prefill_throughput": 10,  # 100 tokens in 10 s
    "effective_decode_throughput": 0.4,  # the 4 behind the first
    "effective_total_throughput": 10.4,
    "effective_prefill_throughput_per_user": 10,
    "effective_decode_throughput_per_user": 0.4,
    "tokens_in_flight": (100 * 6 + 1 * 4 + 2 * 3) / 10,  # the prompt, the first token, two more for the last 3 s
    "active_prefill_throughput": 50,  # in the 2 s in which there is a prompt
    "active_decode_throughput": 1,  # in 4 s
    "active_total_throughput": 104 / 6,
    "active_prefill_throughput_per_user": 50,
    "active_decode_throughput_per_user": 1,
}


def test_means_are_those_worked_out_by_hand(tmp_path):
    found: dict = {}
    for analysis in (EffectiveConcurrency(), TokenFlow()):
        folder = tmp_path / analysis.tag
        folder.mkdir()
        found |= results(folder, analysis, (0, 10), ROWS)
    assert {tag: one.stats["avg"] for tag, one in found.items()} == pytest.approx(WORKED)


def test_concurrency_counts_failed_requests_and_idle_time(tmp_path):
    found = results(tmp_path, EffectiveConcurrency(), (0, 10), ROWS)["effective_concurrency"]
    assert (found.stats["min"], found.stats["max"], found.unit) == (0, 2, "requests")


def test_tokens_flow_while_they_are_read_and_written(tmp_path):
    found = {tag: one.stats for tag, one in results(tmp_path, TokenFlow(), (0, 10), ROWS).items()}
    # 2 tokens in 1 s, then 2 in 3 s
    assert (found["active_decode_throughput"]["max"], found["active_decode_throughput"]["min"]) == pytest.approx((2, 2 / 3))
    assert found["tokens_in_flight"]["max"] == 103
    # spread evenly, 4 in 4 s
    assert found["active_total_throughput"]["min"] == pytest.approx(1)


def test_an_answer_in_one_piece_is_spread_evenly(tmp_path):
    found = results(tmp_path, TokenFlow(), (0, 4), [(0, 1, 3, 10, 5, [1])])
    assert found["active_decode_throughput"].stats["min"] == found["active_decode_throughput"].stats["max"] == 2
    assert found["tokens_in_flight"].stats["max"] == 15


def test_a_part_of_the_run_has_what_happens_in_it(tmp_path):
    found = results(tmp_path, TokenFlow(), (4, 5), ROWS)
    assert found["effective_decode_throughput"].stats["avg"] == pytest.approx(2 / 3)
    assert "active_prefill_throughput" not in found


def test_how_many_reducers_kept_it_changes_nothing(tmp_path):
    many = [(i / 7, i / 7 + 0.5, i / 7 + 2, 30 + i, 4, [i / 7 + 0.5, i / 7 + 1, i / 7 + 2]) for i in range(20)]
    found = []
    for reducers in (1, 3):
        folder = tmp_path / str(reducers)
        folder.mkdir()
        found.append(results(folder, TokenFlow(), (0, 6), many, reducers))
    assert found[0] == found[1]


def test_beyond_the_budget_tokens_are_spread_evenly_for_any_reducers(tmp_path, monkeypatch):
    monkeypatch.setattr(raw_values, "LISTED", 5)
    for split in (1, 2):
        folder = tmp_path / str(split)
        folder.mkdir()
        found = results(folder, TokenFlow(), (0, 10), [ROWS[0], ROWS[0], ROWS[1]], split)
        assert found["active_decode_throughput"].stats["min"] == pytest.approx(2)
        assert found["active_decode_throughput"].stats["max"] == pytest.approx(2)
        assert found["effective_decode_throughput"].stats["avg"] == pytest.approx(0.8)


def made_up(count):
    """Requests that overlap: some without content, in one piece, without a known end, or at the same instant as others."""
    drawn = np.random.default_rng(5)
    for number in range(count):
        began, waits = number // 2 / 10, np.cumsum(drawn.integers(1, 30, size=drawn.integers(1, 6))) / 10
        instants = [began + wait for wait in waits]
        match number % 9:
            case 3:
                yield began, ABSENT, began + 1, 50, ABSENT, []
            case 5:
                yield began, ABSENT, ABSENT, 50, ABSENT, []
            case 7:
                yield began, ABSENT, began, 50, ABSENT, []
            case _:
                yield began, instants[0], instants[-1] + 0.2, float(drawn.integers(1, 90)), len(instants) + 3.0, instants


@pytest.mark.parametrize("listed", [1_000_000, 3], ids=["with lists", "without lists"])
@pytest.mark.parametrize("analysis", [TokenFlow(), EffectiveConcurrency()], ids=lambda one: one.tag)
def test_a_long_run_in_pieces_has_the_statistics_of_the_whole(tmp_path, monkeypatch, analysis, listed):
    monkeypatch.setattr(raw_values, "LISTED", listed)
    rows, windows = [*made_up(200)], [(0.0, 12.0), (2.0, 3.0), (9.5, 9.75), (11.0, 11.0), (40.0, 50.0)]
    kept = raw_values_of(tmp_path, analysis, rows, 2)
    scaled = [(begin * S, end * S) for begin, end in windows]
    whole = analysis.results(kept, scaled)
    monkeypatch.setattr("aiperf_metric_concurrency.pieces.STARTS", 17)
    monkeypatch.setattr("aiperf_metric_concurrency.pieces._BLOCK", 7)
    assert len([*pieces_of(kept)]) == 12
    parts = analysis.results(kept, scaled)
    assert [[one.tag for one in found] for found in parts] == [[one.tag for one in found] for found in whole]
    for found, expected in zip(chain(*parts), chain(*whole), strict=True):
        assert found.stats == pytest.approx(expected.stats, rel=1e-9, abs=1e-9), found.tag


@pytest.mark.parametrize("analysis", [TokenFlow(), EffectiveConcurrency()], ids=lambda one: one.tag)
def test_many_reducers_have_the_statistics_of_one(tmp_path, monkeypatch, analysis):
    rows, windows = [*made_up(300)], [(0.0, 12.0 * S), (9.5 * S, 9.75 * S)]
    for folder in ("one", "many"):
        (tmp_path / folder).mkdir()
    whole = analysis.results(raw_values_of(tmp_path / "one", analysis, rows, 1), windows)
    for name, value in (("STARTS", 40), ("_BLOCK", 16), ("_LEAST", 2), ("_SAMPLED", 100)):
        monkeypatch.setattr(f"aiperf_metric_concurrency.pieces.{name}", value)
    kept = raw_values_of(tmp_path / "many", analysis, rows, 20)
    read = 0
    rows_of = kept.rows

    def counted(begin, end):
        nonlocal read
        read += max(0, min(end, len(kept)) - begin)
        return rows_of(begin, end)

    monkeypatch.setattr(kept, "rows", counted)
    parts = analysis.results(kept, windows)
    for found, expected in zip(chain(*parts), chain(*whole), strict=True):
        assert found.stats == pytest.approx(expected.stats, rel=1e-9, abs=1e-9), found.tag
    assert read < 7 * len(rows), "each piece reads the requests of its own time"


def test_many_values_of_several_pieces_are_known_to_a_thousandth(monkeypatch):
    monkeypatch.setattr("aiperf_metric_concurrency.spread.MOST_VALUES", 1000)
    drawn = np.random.default_rng(5)
    values, widths = drawn.lognormal(3, 1, 50_000), drawn.uniform(1, 9, 50_000)
    values[::100] = 0
    exact, bounded = Spread(), Spread()
    exact.add(values.copy(), widths.copy())
    for part in range(0, 50_000, 4_000):
        bounded.add(values[part : part + 4_000].copy(), widths[part : part + 4_000].copy())
    assert len(bounded._values) <= 4 * 1000
    found, expected = bounded.statistics(), exact.statistics()
    for name in ("avg", "min", "max", "std"):
        assert found[name] == pytest.approx(expected[name], rel=1e-12)
    for name in ("p50", "p90", "p95", "p99"):
        assert found[name] == pytest.approx(expected[name], rel=1.5e-3)


def test_readers_of_the_references_files_find_what_they_know(tmp_path):
    found = results(tmp_path, TokenFlow(), (0, 10), ROWS)
    assert [*found["tokens_in_flight"].stats] == ["avg", "min", "max", "p50", "p90", "p95", "p99", "std"]
    assert {one.group for tag, one in found.items() if tag.startswith("active_")} == {"Active"}
    assert {one.group for tag, one in found.items() if not tag.startswith("active_")} == {"Effective"}
    assert found["effective_decode_throughput_per_user"].title == "Effective Decode Throughput Per User"
    assert all(one.order is not None for one in found.values())


def test_tokens_that_nobody_streams_or_counts_have_no_flow():
    assert TokenFlow.requires == Needs.STREAMING | Needs.TOKENS_IN | Needs.TOKENS_OUT
    assert EffectiveConcurrency.requires is Needs.NOTHING


@pytest.mark.parametrize("kind", [EffectiveConcurrency, TokenFlow])
def test_each_is_registered_and_described(kind):
    assert check_row("metrics", kind).name == kind.tag


class TestEffectiveConcurrencyKeepsTheContract(AnalysisContract):
    metric = EffectiveConcurrency()
