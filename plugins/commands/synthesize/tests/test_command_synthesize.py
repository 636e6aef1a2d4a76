import gzip
import json
import random
import re
from collections import Counter
from itertools import chain, pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from aiperf import AiperfError, BadDataset, Capabilities, DatasetContext, UsageError
from aiperf.registry.registry import Registry
from aiperf.sdk.trace import TraceRow
from aiperf.testing import CommandContract
from aiperf_command_analyze_trace.analysis import analyse
from aiperf_command_synthesize import Synthesize
from aiperf_command_synthesize.options import SynthesizeOptions
from aiperf_dataset_mooncake_trace.dataset import MooncakeTrace
from aiperf_dataset_mooncake_trace.options import MooncakeTraceOptions
from aiperf_dataset_mooncake_trace.recorded import recorded
from aiperf_dataset_synthetic.contract import WordTokens

B = 16


class TestSynthesizeKeepsTheContract(CommandContract):
    command = Synthesize


def agents_in(folder, **options):
    command = Synthesize()
    command.registry = Registry.discover()
    assert command.run(SynthesizeOptions(output=folder, **options), ("agentic-code",)) == 0
    (made,) = folder.iterdir()
    return made


def run(path, output, **options):
    command = Synthesize()
    command.registry = Registry.discover()
    return command.run(SynthesizeOptions(input_file=path, output=output, **({"block_size": B} | options)), ())


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def made(path, rows, **options):
    """The rows that are made of *rows*."""
    assert run(written(path / "in.jsonl", rows), path / "out.jsonl", **options) == 0
    return [json.loads(line) for line in (path / "out.jsonl").read_text().splitlines()]


def row(ids, cut=0, **fields):
    return {"timestamp": 0, "input_length": len(ids) * B - cut, "output_length": 10, "hash_ids": ids, **fields}


def chats(draw, count):
    """Prompts that grow, all behind one system prompt."""
    open_, fresh = [], 8
    for _ in range(count):
        if not open_ or draw.random() < 0.3:
            open_.append(list(range(8)))
        at = max(0, len(open_) - 1 - int(draw.expovariate(0.05)))
        more = draw.randrange(2, 16, 2)
        open_[at] = open_[at] + list(range(fresh, fresh + more))
        fresh += more
        yield open_[at]


def agents(draw, count):
    prompts = [[1000 * kind + each for each in range(2 * draw.randrange(5, 30))] for kind in range(1, 30)]
    for number in range(count):
        tail = [1_000_000 + 20 * number + each for each in range(draw.randrange(1, 12))]
        yield prompts[min(28, int(draw.expovariate(0.15)))] + tail


def documents(draw, count):
    """A few documents of many, asked again and again."""
    for number in range(count):
        which = int(draw.paretovariate(0.8)) % 900
        yield [100 * which + each for each in range(20)] + [10**6 + 5 * number + each for each in range(draw.randrange(5))]


def leading(ids, known):
    return next((place for place, each in enumerate(ids) if each not in known), len(ids))


def implied(rows, p, k, draw):
    """Mean hit rate where the shared blocks, and those of them that are hits, become p times as many, in k trees."""
    uses = Counter(each for ids in rows for each in set(ids))
    shared = {each for each, count in uses.items() if count > 1}
    trees = [set() for _ in range(k)]
    rates = []
    for ids in rows:
        tree = draw.choice(trees)
        prefix = leading(ids, shared)
        hits = min(leading(ids, tree), prefix)
        tree.update(ids)
        rates.append(p * hits / (p * prefix + len(ids) - prefix))
    return sum(rates) / len(rates)


@pytest.mark.parametrize("kind", [chats, agents, documents])
@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0])
def test_the_hit_rate_is_what_the_multipliers_imply(kind, p, k, tmp_path):
    rows = list(kind(random.Random(3), 3000))
    new = made(tmp_path, map(row, rows), prefix_length=p, prefix_roots=k)
    report, _ = analyse((TraceRow(each["input_length"], 1, each["hash_ids"]) for each in new), B)
    expected = [implied(rows, p, k, random.Random(seed)) for seed in range(4 if k > 1 else 1)]
    assert report.cache_hit_rate == pytest.approx(sum(expected) / len(expected), abs=0.01)
    assert report.lengths_that_disagree == 0 and len(new) == 3000


def test_fewer_blocks_are_the_same_ones_in_every_row(tmp_path):
    rows = [row(list(range(each))) for each in (4, 6, 7, 7)]
    assert [each["hash_ids"] for each in made(tmp_path, rows, prefix_length=0.5)] == [[0, 3], [0, 3, 5], [0, 3, 5], [0, 3, 5]]


def test_ids_of_shared_blocks_are_multiplied_and_others_are_new(tmp_path):
    rows = [row([1, 2, 11]), row([1, 2, 3, 12], cut=5), row([1, 2, 3])]
    new = [each["hash_ids"] for each in made(tmp_path, rows, prefix_length=2.0)]
    assert [ids[:4] for ids in new] == [[2, 3, 4, 5]] * 3 and new[2] == [2, 3, 4, 5, 6, 7]
    fresh = [ids[leading(ids, {2, 3, 4, 5, 6, 7}) :] for ids in new]
    assert [len(ids) for ids in fresh] == [1, 1, 0] and fresh[0] != fresh[1] and min(fresh[0] + fresh[1]) > 7
    assert [each["input_length"] for each in made(tmp_path, rows, prefix_length=2.0)] == [5 * B, 7 * B - 5, 6 * B]


@pytest.mark.parametrize(("p", "blocks"), [(0.1, [1, 1]), (0.5, [1, 2]), (0.75, [2, 3]), (1.5, [5, 6]), (2.25, [7, 9])])
def test_a_prefix_has_its_blocks_times_the_multiplier(p, blocks, tmp_path):
    new = made(tmp_path, [row([1, 2, 3]), row([1, 2, 3]), row([5, 6, 7, 8]), row([5, 6, 7, 8]), row([9])], prefix_length=p)
    assert [len(each["hash_ids"]) for each in new] == [blocks[0]] * 2 + [blocks[1]] * 2 + [1]
    assert [each["input_length"] for each in new] == [len(each["hash_ids"]) * B for each in new]


def test_rows_that_share_a_part_of_a_stretched_prefix_share_it_still(tmp_path):
    new = [each["hash_ids"] for each in made(tmp_path, [row(ids) for ids in ([1, 2], [1, 2, 3, 4]) * 2], prefix_length=1.5)]
    assert new[1][:3] == new[0] and len(new[1]) == 6


def test_a_cut_shared_block_stays_cut(tmp_path):
    new = made(tmp_path, [row([1, 2], cut=6), row([1, 2], cut=6)], prefix_length=3.0)
    assert [each["input_length"] for each in new] == [6 * B - 6] * 2


def test_own_parts_answers_and_times_are_scaled(tmp_path):
    rows = [row([1, 5], cut=8, timestamp=1000), row([1, 6], timestamp=2001, delay=10)]
    new = made(tmp_path, rows, prompt_length=2.5, output_length=0.26, speedup=2.0)
    assert [(each["timestamp"], each["input_length"], each["output_length"], len(each["hash_ids"])) for each in new] == [
        (500, B + 20, 3, 3), (1000.5, B + 40, 3, 4)]  # fmt: skip
    assert new[1]["delay"] == 5
    assert [each["output_length"] for each in made(tmp_path, rows, output_length=0.0)] == [1, 1]


def test_without_multipliers_rows_stay_as_they_are(tmp_path):
    rows = [row([5, 7], note={"kept": [1]}), {"text_input": "a", "timestamp": 3}, row([5], session_id="s", delay=0)]
    assert made(tmp_path, rows) == rows


def test_other_fields_and_their_order_are_kept(tmp_path):
    (new, *_) = made(tmp_path, [{"x": 1, **row([1]), "y": {"z": None}}], prefix_length=2.0)
    assert list(new) == ["x", "timestamp", "input_length", "output_length", "hash_ids", "y"] and new["y"] == {"z": None}


def test_other_kinds_of_rows_keep_their_content(tmp_path):
    chat = {"timestamp": 10, "messages": [{"role": "user", "content": "a"}], "output_length": 9}
    (new,) = made(tmp_path, [chat], prefix_length=2.0, speedup=2.0, max_osl=4)
    assert new == chat | {"timestamp": 5, "output_length": 4}


def test_limits_leave_out_long_prompts_and_cut_new_ones(tmp_path, capsys):
    rows = [row([1, 2]), row([1, 2, 3]), row(list(range(10, 20)))]
    new = made(tmp_path, rows, prefix_length=2.0, max_isl=4 * B, max_osl=3)
    assert [(each["input_length"], len(each["hash_ids"]), each["output_length"]) for each in new] == [(64, 4, 3), (64, 4, 3)]
    assert "left out by --max-isl 64: 1 of the rows" in capsys.readouterr().err
    with pytest.raises(BadDataset, match="no row is left"):
        made(tmp_path, rows, max_isl=3)


def test_a_conversation_ends_before_a_prompt_that_is_too_long(tmp_path):
    rows = [row([1], session_id="a"), row([2], session_id="b"), row([1, 3, 4], session_id="a"), row([1], session_id="a")]
    assert [each["session_id"] for each in made(tmp_path, rows, max_isl=2 * B)] == ["a", "b"]


def test_a_conversation_stays_in_one_tree(tmp_path):
    rows = [row([1, 2], session_id=f"s{n % 20}") for n in range(200)]
    new = made(tmp_path, rows, prefix_roots=4)
    firsts = {}
    for each in new:
        firsts.setdefault(each["session_id"], set()).add(each["hash_ids"][0])
    assert all(len(ids) == 1 for ids in firsts.values())
    assert len(set.union(*firsts.values())) == 4


def test_rows_without_a_session_are_told_to_be_torn_apart(tmp_path, capsys):
    rows = [{"input_length": 512 * (n + 1), "output_length": 5, "hash_ids": [*range(n + 1)]} for n in range(3)]
    made(tmp_path, rows, prefix_roots=4)
    assert "3 rows have no session_id: each goes to one of the 4 trees by itself" in capsys.readouterr().err
    made(tmp_path, [{**row, "session_id": "s"} for row in rows], prefix_roots=4)
    assert "session_id" not in capsys.readouterr().err


def test_the_same_seed_writes_the_same_bytes(tmp_path):
    path = written(tmp_path / "in.jsonl", map(row, agents(random.Random(1), 200)))
    for name in ("a.jsonl", "b.jsonl", "c.jsonl.gz", "d.jsonl.gz"):
        run(path, tmp_path / name, prefix_roots=3, prefix_length=1.5)
    run(path, tmp_path / "e.jsonl", prefix_roots=3, prefix_length=1.5, seed=43)
    a, b, c, d, e = (each.read_bytes() for each in sorted(tmp_path.glob("[a-e].jsonl*")))
    assert a == b and c == d and gzip.decompress(c) == a and e != a


def test_hashes_of_64_bits_become_small_numbers(tmp_path):
    new = made(tmp_path, [row([2**64 - 1, 7]), row([2**64 - 1, 8]), row([2**63, 9]), row([2**63])], prefix_length=2.0)
    ids = [each["hash_ids"] for each in new]
    assert ids[0][:2] == ids[1][:2] and ids[2][:2] == ids[3][:2] != ids[0][:2]
    assert max(map(max, ids)) < 2**53


def test_a_run_makes_of_a_trace_what_the_command_writes(tmp_path):
    path = written(tmp_path / "in.jsonl", map(row, agents(random.Random(1), 60)))
    run(path, tmp_path / "out.jsonl", prefix_roots=2, prefix_length=1.5, prompt_length=0.5, speedup=3.0, max_isl=600, seed=5)

    def read(file, **options):
        capabilities = Capabilities(system_message=True, multi_turn=True)
        context = DatasetContext(60, 5, True, WordTokens(), capabilities, file)
        return list(MooncakeTrace(MooncakeTraceOptions(block_size=B, **options), context))

    scaled = read(path, prefix_roots=2, prefix_length=1.5, prompt_length=0.5, speedup=3.0, max_isl=600)
    turns, files = ([one.turns[0] for one in each] for each in (scaled, read(tmp_path / "out.jsonl")))
    facts = [[(turn.input_tokens, turn.max_tokens, turn.timestamp_ms) for turn in each] for each in (turns, files)]
    assert facts[0] == facts[1] and len(turns) > 10
    words = [turn.text.split() for turn in turns]
    expected = [each.blocks for each in recorded(tmp_path / "out.jsonl")]
    for (one, other), (ids, others) in zip(pairwise(words), pairwise(expected), strict=True):
        same = leading([a == b for a, b in zip(ids, others, strict=False)], {True})
        assert one[: same * B] == other[: same * B]
        assert one[: same * B + B] != other[: same * B + B]


def test_another_format_becomes_a_mooncake_trace(tmp_path, capsys):
    rows = [{"chat_id": n, "parent_chat_id": n - 1, "timestamp": 0.5 * n, "input_length": 32 + 16 * n, "output_length": 3,
             "hash_ids": list(range(2 + n))} for n in range(3)]  # fmt: skip
    new = made(tmp_path, rows, block_size=None, prefix_length=2.0)
    assert [each["timestamp"] for each in new] == [0, 500, 1000] and "chat_id" not in new[0] and "session_id" not in new[0]
    assert [each["input_length"] for each in new] == [64, 96, 112]
    assert "--isl-block-size 16" in capsys.readouterr().err


def test_a_person_sees_both_traces(tmp_path, capsys):
    made(tmp_path, map(row, agents(random.Random(1), 50)), prefix_length=2.0)
    shown = capsys.readouterr().out
    assert shown.splitlines()[0].split() == ["before", "after"] and "Cache hit rate (%)" in shown


def test_what_cannot_be_made_is_refused_with_a_sentence(tmp_path):
    path = written(tmp_path / "in.jsonl", [row([1, 2, 3], cut=40), row([1, 2, 3])])
    with pytest.raises(BadDataset, match=r"in.jsonl:1: input_length 8 is too short for 3 shared hash_ids of 16 tokens each"):
        run(path, tmp_path / "out.jsonl", prefix_length=2.0)
    assert not (tmp_path / "out.jsonl").exists()
    with pytest.raises(UsageError, match="needs a file to write"):
        run(path, None)
    with pytest.raises(AiperfError, match="is the trace itself"):
        run(path, path)
    with pytest.raises(AiperfError, match="can't be written"):
        run(path, path / "below")
    with pytest.raises(UsageError, match="none was given"):
        run(None, Path("x"))


def test_coding_agents_share_layers_and_grow(tmp_path, capsys):
    folder = agents_in(tmp_path / "a", num_sessions=60, seed=7)
    assert folder.name.startswith("default_60s_seed7_")
    rows = [json.loads(line) for line in (folder / "dataset.jsonl").read_text().splitlines()]
    sessions = {}
    for each in rows:
        sessions.setdefault(each["session_id"], []).append(each)
    assert len(sessions) == 60
    for name, (first, *later) in sessions.items():
        assert name.startswith("sess-") and len(name) == 17
        assert first["timestamp"] == 0 and first["hash_ids"][:63] == list(range(63))
        assert all("timestamp" not in each and each["delay"] > 0 for each in later)
        whole = [first, *later]
        prompt = sum(each["input_length"] for each in whole) + sum(each["output_length"] for each in whole[:-1])
        assert prompt <= 200_000
        assert all(len(each["hash_ids"]) == -(-each["input_length"] // 512) for each in (first, *later))
    groups = {}
    for first, *_ in sessions.values():
        groups.setdefault(first["group_id"], set()).add(tuple(first["hash_ids"][63:100]))
    assert all(len(blocks) == 1 for blocks in groups.values()) and 1 < len(groups) < 50
    own = Counter(each for row in rows for each in row["hash_ids"] if each >= 63 + 50 * 40)
    assert set(own.values()) == {1}
    quality = json.loads((folder / "quality.json").read_text())["measures"]
    assert quality["generation_length"]["observed"]["min"] >= 30
    assert quality["initial_context"]["target_median"] == 57_000
    assert quality["generation_length"]["observed"]["median"] == pytest.approx(300, rel=0.15)
    structure = json.loads((folder / "cache_structure.json").read_text())
    assert [len(session["turns"]) for session in structure["sessions"]] == list(map(len, sessions.values()))
    assert (folder / "comparison.txt").read_text().strip() == capsys.readouterr().out.strip()


def test_pages_show_what_was_made_and_need_nothing_else(tmp_path):
    folder = agents_in(tmp_path, num_sessions=60)
    pages = {path.name: path.read_text() for path in folder.glob("*.html")}
    assert sorted(pages) == ["cache_explorer.html", "report.html", "simulation.html"]
    for text in pages.values():
        assert text.startswith("<!doctype html>") and folder.name in text
        assert "<script" not in text and "://" not in text
        for drawing in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
            ElementTree.fromstring(drawing)
    for line in (folder / "comparison.txt").read_text().splitlines():
        assert line in pages["report.html"]
    structure = json.loads((folder / "cache_structure.json").read_text())
    totals = Counter()
    for session in structure["sessions"]:
        for turn in session["turns"]:
            totals.update({segment["layer"]: segment["count"] for segment in turn["segments"]})
    for layer, count in totals.items():
        assert f"<td>{layer}</td>" in pages["cache_explorer.html"] and f"<td>{count:,}</td>" in pages["cache_explorer.html"]
    sessions = {}
    for text in (folder / "dataset.jsonl").read_text().splitlines():
        each = json.loads(text)
        sessions.setdefault(each["session_id"], []).append(each["hash_ids"])
    whole = [[*chain(*turns[: at + 1])] for turns in sessions.values() for at in range(len(turns))]
    blocks, distinct = sum(map(len, whole)), len({block for prompt in whole for block in prompt})
    assert f"{len(whole):,} prompts of {blocks:,} blocks, {distinct:,} of them different" in pages["simulation.html"]
    assert f"{distinct:,}: {1 - distinct / blocks:.1%}" in pages["simulation.html"], "a cache for all blocks misses each once"


def test_a_manifest_makes_the_same_data_set_again(tmp_path):
    first = agents_in(tmp_path / "a", num_sessions=20, max_isl=80_000, max_osl=100, seed=3)
    again = agents_in(tmp_path / "b", num_sessions=20, config=str(first / "manifest.json"), max_osl=100, seed=3)
    more = agents_in(tmp_path / "c", num_sessions=25, config=str(first / "manifest.json"), max_osl=100, seed=3)
    text = (first / "dataset.jsonl").read_bytes()
    assert (again / "dataset.jsonl").read_bytes() == text and (more / "dataset.jsonl").read_bytes().startswith(text)
    rows = list(map(json.loads, text.splitlines()))
    assert max(each["output_length"] for each in rows) == 100 and max(each["input_length"] for each in rows) <= 80_000


def test_a_run_reads_what_coding_agents_made(tmp_path):
    report, _ = analyse(recorded(agents_in(tmp_path / "a", num_sessions=5) / "dataset.jsonl"), 512)
    assert report.lengths_that_disagree == 0 and report.arrivals.sessions == 5


def test_a_model_that_makes_no_session_is_refused(tmp_path):
    with pytest.raises(AiperfError, match="--max-isl: no session can be made: the common layers have 52,000 tokens"):
        agents_in(tmp_path / "a", max_isl=1000)
    with pytest.raises(UsageError, match="No such file"):
        agents_in(tmp_path / "a", config="nope")
    manifest = json.loads((agents_in(tmp_path / "b", num_sessions=1) / "manifest.json").read_text())
    for part, value, why in (("fast", 2, "fast is 2; it must be a share"), ("layers", 1, "is no manifest of a data set"),
                             ("output", {"mean": 1, "median": 3}, "output has the mean 1 and the median 3")):  # fmt: skip
        (tmp_path / "m.json").write_text(json.dumps({**manifest, "model": {part: value}}))
        with pytest.raises(AiperfError, match=why):
            agents_in(tmp_path / "a", config=str(tmp_path / "m.json"))
    assert not (tmp_path / "a").exists()


def test_options_of_the_other_kind_are_refused(tmp_path):
    with pytest.raises(UsageError, match="--speedup-ratio is not for synthesize agentic-code"):
        agents_in(tmp_path / "a", speedup=2.0)
    with pytest.raises(UsageError, match="--num-sessions is for synthesize agentic-code alone"):
        run(written(tmp_path / "in.jsonl", [row([1])]), tmp_path / "out.jsonl", num_sessions=2)


def test_rows_with_texts_are_not_scaled(tmp_path):
    said = [{"messages": [{"role": "user", "content": "hi"}]}]
    path = written(tmp_path / "dag.jsonl", [{"session_id": "a", "turns": said}])
    with pytest.raises(BadDataset, match="a row of dag_jsonl has texts in place of a length"):
        run(path, tmp_path / "out.jsonl")
