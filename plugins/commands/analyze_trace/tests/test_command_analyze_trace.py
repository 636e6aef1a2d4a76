import gzip
import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from aiperf import AiperfError, BadDataset, UsageError
from aiperf.registry.registry import Registry
from aiperf.sdk.trace import TraceRow
from aiperf.testing import CommandContract
from aiperf_command_analyze_trace import AnalyzeTrace, curve
from aiperf_command_analyze_trace.analysis import analyse
from aiperf_command_analyze_trace.blocks import Blocks
from aiperf_command_analyze_trace.curve import CacheCurve
from aiperf_command_analyze_trace.options import AnalyzeTraceOptions
from aiperf_command_analyze_trace.tables import Table

SHARED = [{"timestamp": at, "input_length": 1300, "output_length": 3 + n, "hash_ids": [1, 2, 11 + n]}
          for n, at in enumerate((0, 10, 30))]  # fmt: skip


class TestAnalyzeTraceKeepsTheContract(CommandContract):
    command = AnalyzeTrace


def run(path, *words, **options):
    command = AnalyzeTrace()
    command.registry = Registry.discover()
    return command.run(AnalyzeTraceOptions(input_file=path, **options), words)


def report_of(path, capsys, **options):
    assert run(path, as_json=True, **options) == 0
    return json.loads(capsys.readouterr().out)


def written(path, rows):
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


def rows_of(*lists):
    return [TraceRow(len(ids) * 10, 1, ids) for ids in lists]


def trees(draw, count):
    """Rows of ids that each tell the whole prefix, as hashes of serving engines do."""
    for _ in range(count):
        ids, last = [], 0
        for _ in range(draw.randrange(8)):
            last = last * 3 + draw.randrange(3) + 1
            ids.append(last)
        yield ids


def anywhere(draw, count):
    """Rows of ids in any order, also twice in a row."""
    return [[draw.randrange(12) for _ in range(draw.randrange(8))] for _ in range(count)]


def fed(rows, draw):
    """What the rows give when they come in batches of any size."""
    blocks, cache, at = Blocks(), CacheCurve(), 0
    while at < len(rows):
        part = rows[at : at + draw.randrange(1, 9)]
        at += len(part)
        ids = np.array([each for row in part for each in row], np.uint64)
        cache.add(blocks.add(ids, np.array(list(map(len, part)), np.int64)))
    return blocks, cache


def test_the_numbers_are_the_references(tmp_path, capsys):
    found = report_of(written(tmp_path / "t.jsonl", SHARED), capsys)
    # aiperf 0.13.0 analyze-trace of the same rows
    expected = {
        "total_requests": 3, "unique_prefixes": 5, "num_prefix_groups": 1, "min_isl": 1300, "max_isl": 1300, "avg_isl": 1300.0,
        "min_osl": 3, "max_osl": 5, "avg_osl": 4.0,
    }  # fmt: skip
    assert {key: found[key] for key in expected} == expected
    assert found["cache_hit_rate"] == pytest.approx(0.4444444444444444)
    assert found["prefix_reuse_ratio"] == pytest.approx(0.6666666666666666)
    assert found["context_length_stats"]["median"] == 1024 and found["unique_prompt_length_stats"]["median"] == 276
    assert found["osl_stats"] == pytest.approx(
        {"mean": 4.0, "std_dev": 0.816496580927726, "min": 3.0, "p25": 3.5, "median": 4.0, "p75": 4.5, "max": 5.0}
    )
    assert found["hit_rate_stats"]["std_dev"] == pytest.approx(0.31426968052735443)


@pytest.mark.parametrize("kind", [trees, anywhere])
@pytest.mark.parametrize("seed", range(12))
def test_blocks_are_counted_as_by_a_list_of_all_prefixes(kind, seed):
    draw = random.Random(seed)
    rows = list(kind(draw, 40))
    blocks, _ = fed(rows, draw)
    prefixes = Counter(tuple(row[: end + 1]) for row in rows for end in range(len(row)))
    pairs = Counter((place, each) for row in rows for place, each in enumerate(row))
    seen, hits = set(), []
    for row in rows:
        hits.append(next((place for place, each in enumerate(row) if each not in seen), len(row)))
        seen.update(row)
    assert blocks.unique_prefixes == len(prefixes)
    assert blocks.prefixes_used_once == sum(count == 1 for count in prefixes.values())
    assert blocks.groups == sum(count > 1 for count in Counter(row[0] for row in rows if row).values())
    assert blocks.distinct == len(seen) and blocks.references == sum(map(len, rows))
    assert blocks.hits.tolist() == hits
    assert blocks.repeated.tolist() == [sum(pairs[place, each] > 1 for place, each in enumerate(row)) for row in rows]


def lru_hits(rows, size):
    """Blocks that a cache of *size* holds: the last used ones, of a row its first ones before its last ones."""
    used: list[int] = []
    found = 0
    for row in rows:
        ids = list(dict.fromkeys(row))
        held = set(used[:size])
        found += sum(each in held for each in ids)
        used = ids + [each for each in used if each not in set(ids)]
    return found / max(1, sum(len(set(row)) for row in rows))


@pytest.mark.parametrize("kind", [trees, anywhere])
@pytest.mark.parametrize("seed", range(6))
def test_the_curve_is_that_of_a_simulated_cache(kind, seed):
    draw = random.Random(seed)
    rows = list(kind(draw, 60))
    _, cache = fed(rows, draw)
    assert cache.exact
    for size in (1, 2, 3, 5, 8, 13, 40, 1000):
        assert cache.hit_rate(size) == pytest.approx(lru_hits(rows, size)), size


def chats(draw, count):
    system, open_, fresh = list(range(3)), [], 3
    for _ in range(count):
        if not open_ or draw.random() < 0.4:
            open_.append(list(system))
        at = max(0, len(open_) - 1 - int(draw.expovariate(0.02)))
        more = draw.randrange(1, 9)
        open_[at] = open_[at] + list(range(fresh, fresh + more))
        fresh += more
        yield open_[at]


def agents(draw, count):
    prompts = [[1000 * kind + each for each in range(draw.randrange(5, 30))] for kind in range(1, 30)]
    for number in range(count):
        tail = [1_000_000 + 20 * number + each for each in range(draw.randrange(1, 12))]
        yield prompts[min(28, int(draw.expovariate(0.15)))] + tail


def popular(draw, count):
    """One long document of many, the more often the earlier it is in the list."""
    return [[100 * which + each for each in range(20)] for which in (int(draw.paretovariate(0.8)) % 5000 for _ in range(count))]


@pytest.mark.parametrize("kind", [chats, agents, popular])
def test_a_sampled_curve_is_within_a_point_of_the_exact_one(kind, monkeypatch):
    rows = [TraceRow(10 * len(ids), 1, ids) for ids in kind(random.Random(5), 8000)]
    monkeypatch.setattr(curve, "EXACT", 10**9)
    exact, _ = analyse(rows, 10, curve=True)
    monkeypatch.setattr(curve, "EXACT", 60_000)
    sampled, _ = analyse(rows, 10, curve=True)
    assert exact.cache_curve.sampled is None and sampled.cache_curve.sampled < 0.8
    pairs = zip(exact.cache_curve.points, sampled.cache_curve.points, strict=True)
    assert max(abs(one.hit_rate - other.hit_rate) for one, other in pairs) < 0.01


def test_a_key_has_one_number_however_often_the_table_grows():
    table, draw, known = Table(), random.Random(1), {}
    for _ in range(60):
        keys = [draw.choice((0, draw.randrange(1 << 64), draw.randrange(3000))) for _ in range(700)]
        for key, number in zip(keys, table.numbers(np.array(keys, np.uint64)).tolist(), strict=True):
            assert known.setdefault(key, number) == number
    assert sorted(known.values()) == list(range(table.size))


def test_ids_of_any_size_are_told_apart():
    report, _ = analyse(rows_of([2**64 - 1, 5], [2**64 - 1, -7], [2**63, 5]), 10)
    assert (report.distinct_blocks, report.unique_prefixes, report.num_prefix_groups) == (4, 5, 1)


def test_a_cut_last_block_makes_no_negative_unique_length():
    rows = [TraceRow(15, 1, [1, 2]), TraceRow(15, 1, [1, 2]), TraceRow(25, 1, [1, 2, 3]), TraceRow(12, 1, [1, 9])]
    report, _ = analyse(rows, 10)
    assert report.unique_prompt_length_stats.min == 0 and report.context_length_stats.max == 20


def test_a_trace_without_blocks_has_lengths_and_times():
    report, _ = analyse([TraceRow(7, 2, (), 0.0), TraceRow(9, 4, (), 500.0)], 10, curve=True)
    assert (report.unique_prefixes, report.cache_hit_rate, report.hit_rate_stats.mean) == (0, 0.0, None)
    assert report.arrivals.requests_per_second == 2.0 and report.avg_isl == 8.0


def test_arrivals_gaps_and_requests_in_flight():
    times = (0, 100, 300, 2000, 1500)
    rows = [TraceRow(1, 1, (), at, session="a" if at in (100, 2000) else None) for at in times]
    arrivals = analyse(rows, 10, request_ms=250.0)[0].arrivals
    assert arrivals.out_of_order == 1 and arrivals.sessions == 1
    assert arrivals.inter_arrival_ms_stats.max == 1200 and arrivals.inter_arrival_ms_stats.min == 100
    assert arrivals.per_second_stats.max == 3
    assert (arrivals.in_flight_stats.max, arrivals.in_flight_stats.mean) == (2, 7 / 5)
    assert arrivals.open_sessions_stats.mean == 4 / 5


def test_a_pause_of_a_year_needs_no_memory_for_its_seconds():
    arrivals = analyse([TraceRow(1, 1, (), at) for at in (0.0, 1.0, 3.2e13)], 10)[0].arrivals
    assert arrivals.per_second_stats.max < 3


@pytest.mark.parametrize(("name", "text", "size", "rate"), [
    ("m.jsonl", '{"timestamp": 0, "input_length": 1024, "hash_ids": [1, 2]}\n'
     '{"timestamp": 9, "input_length": 600, "hash_ids": [1, 3]}\n', 512, 0.25),
    ("m.csv", 'timestamp,input_length,hash_ids\n0,1024,"[1, 2]"\n9,600,"[1, 3]"\n', 512, 0.25),
    ("b.jsonl", '{"chat_id": 1, "timestamp": 0, "input_length": 32, "output_length": 9, "hash_ids": [4, 5]}\n'
     '{"chat_id": 2, "parent_chat_id": 1, "timestamp": 1, "input_length": 48, "output_length": 9, "hash_ids": [4, 5, 6]}\n',
     16, 1 / 3),
    ("g.csv", "Timestamp,Request tokens,Response tokens\n5,472,18\n45,87,230\n", 512, 0.0),
])  # fmt: skip
def test_every_trace_has_its_own_length_of_blocks(name, text, size, rate, tmp_path, capsys):
    path = tmp_path / name
    path.write_text(text)
    found = report_of(path, capsys)
    assert (found["block_size"], found["total_requests"]) == (size, 2)
    assert found["cache_hit_rate"] == pytest.approx(rate)
    assert report_of(path, capsys, block_size=8)["block_size"] == 8


def test_a_compressed_trace_is_read(tmp_path, capsys):
    assert report_of(written(tmp_path / "t.jsonl.gz", SHARED), capsys)["total_requests"] == 3


def test_a_person_sees_the_table_the_histogram_and_the_curve(tmp_path, capsys):
    assert run(written(tmp_path / "t.jsonl", SHARED), cache_curve=True, cache_blocks=[3]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Trace Analysis Report\n")
    for part in ("Total requests:   3", "Theoretical Hit Rates", "Input Length, requests", "Hit rate over cache size (exact)",
                 "A cache of 3 blocks holds 44.44% of the blocks"):  # fmt: skip
        assert part in shown


def test_the_report_is_written_and_drawn(tmp_path, capsys):
    pytest.importorskip("aiperf_painting", reason="needs the extra plots")
    path, out, picture = written(tmp_path / "t.jsonl", SHARED), tmp_path / "new" / "report.json", tmp_path / "curve.svg"
    assert run(path, output_file=out, plot=picture) == 0
    assert json.loads(out.read_text())["cache_curve"]["points"][-1] == {"blocks": 5, "hit_rate": 4 / 9}
    assert "Hit rate over cache size" in picture.read_text()
    assert str(picture) in capsys.readouterr().err


def test_a_picture_needs_the_plot_command(tmp_path, monkeypatch):
    find = Registry.find
    monkeypatch.setattr(Registry, "find", lambda self, category, name: None if name == "plot" else find(self, category, name))
    with pytest.raises(AiperfError, match="which is not installed"):
        run(written(tmp_path / "t.jsonl", SHARED), plot=tmp_path / "curve.png")


def test_ids_that_disagree_with_lengths_are_counted(tmp_path, capsys):
    rows = [{"input_length": length, "hash_ids": [1, 2, 3]} for length in (40, 1500)]
    assert run(written(tmp_path / "t.jsonl", rows)) == 0
    assert "1 of 2 rows" in capsys.readouterr().err


@pytest.mark.parametrize(("rows", "why"), [
    (['{"input_length": 5}', '{"input_length": 0}'], ":2: input_length is 0; it must be a whole number of at least 1"),
    (['{"input_length": 5}', '{"input_length": 5, "hash_ids": "a"}'], ":2: hash_ids must be a list of whole numbers"),
    (['{"input_length": 5}', '{"input_length": 5, "timestamp": -1}'], ":2: timestamp is -1"),
    (['{"input_length": 5}', '{"output_length": 5}'], ":2: a row has exactly one of"),
    (['{"input_length": 5}', '{"input_length": 5, "payload": {"a": 1}}'], ":2: a row has exactly one of"),
    (['{"input_length": 5}', "[1]"], ":2: list is no JSON object"),
    (['{"input_length": 5}', '{"input_length'], ":2: no JSON"),
])  # fmt: skip
def test_a_bad_row_is_named_with_its_line(rows, why, tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(rows) + "\n")
    with pytest.raises(BadDataset) as caught:
        run(path)
    assert why in caught.value.message and caught.value.exit_code == 1


def test_other_kinds_of_rows_count_without_lengths(tmp_path, capsys):
    chat = {"messages": [{"role": "user", "content": "a"}]}
    rows = [{"input_length": 5, "session_id": 3}, {"text_input": "a", "timestamp": 5}, chat]
    assert report_of(written(tmp_path / "t.jsonl", rows), capsys)["isl_stats"]["max"] == 5


def test_what_is_no_trace_is_refused_with_a_sentence(tmp_path):
    texts = written(tmp_path / "t.jsonl", [{"text": "hello"}])
    with pytest.raises(AiperfError, match="records no lengths") as caught:
        run(texts)
    assert any("mooncake_trace" in hint for hint in caught.value.hints)
    with pytest.raises(AiperfError, match="there is no file"):
        run(tmp_path / "no.jsonl")
    (tmp_path / "empty").mkdir()
    with pytest.raises(AiperfError, match="it is a directory"):
        run(tmp_path / "empty")
    with pytest.raises(UsageError, match="one trace, 2 were given"):
        run(texts, str(texts))
    with pytest.raises(UsageError, match="one trace, none was given"):
        run(None)
    with pytest.raises(UsageError, match="a picture ends in"):
        run(texts, plot=Path("curve.pdf"))


def test_a_report_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(AiperfError, match="can't be written"):
        run(written(tmp_path / "t.jsonl", SHARED), output_file=tmp_path / "file" / "r.json")
