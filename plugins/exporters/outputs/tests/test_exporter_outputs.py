"""outputs.json: what stands in it, and in which order."""

import json
from importlib.resources import files
from pathlib import Path

import jsonschema
import numpy as np
from aiperf import Metric, RecordBatch, Target, Unit
from aiperf.parts.journal import CANCELLED, ERROR
from aiperf_exporter_outputs import Outputs, OutputsOptions
from aiperf_exporter_outputs.contract import OutputsContract
from aiperf_testing.batches import sample_batch, scored

WALL = 1_700_000_000_000_000_000


class Latency(Metric):
    tag, title, unit, display = "request_latency", "Latency", Unit.NANOSECONDS, Unit.MILLISECONDS

    def column(self, batch):
        return batch["last_token_ns"] - batch["started_ns"]


class Tokens(Metric):
    tag, title, unit = "output_sequence_length", "Tokens", Unit.TOKENS

    def column(self, batch):
        return batch["output_tokens"]


class Unlisted(Tokens):
    tag = "other_tokens"


class TestOutputsKeepsTheContract(OutputsContract):
    pass


def answered(batch: RecordBatch, answers: list, reasonings: list, **columns) -> RecordBatch:
    texts = {**batch.texts, "answer": answers, "reasoning": reasonings}
    return scored((Latency(), Tokens(), Unlisted()), RecordBatch({**batch.columns, **columns}, batch.valid, texts))


def written(folder: Path, *parts: RecordBatch, **changes) -> dict:
    exporter = Outputs(Target(folder, started_wall_ns=WALL, **changes), OutputsOptions(export_outputs_json=True))
    paths = [folder / f"part-{number}" for number in range(len(parts))]
    for path, batch in zip(paths, parts, strict=True):
        path.write_bytes(exporter.rows(batch))
    document = json.loads(b"".join(exporter.join(paths)))
    schema = json.loads(files("aiperf_exporter_outputs").joinpath("outputs.schema.json").read_text())
    jsonschema.validate(document, schema)
    return document


def sample(count: int = 4) -> RecordBatch:
    return sample_batch().take(np.arange(count))


def test_an_item_has_the_request_its_metrics_and_its_text(tmp_path):
    batch = answered(sample(2), ["Hallo\nWelt", None], ["Hm. ", None])
    first, second = written(tmp_path, batch)["data"]
    assert first["response_text"] == "Hm. Hallo\nWelt" and second["response_text"] is None
    texts = batch.texts
    assert first["conversation_id"] == texts["conversation_id"][0] and first["x_request_id"] == texts["request_id"][0]
    assert first["request_start_ns"] == WALL + int(batch["started_ns"][0])
    assert set(first["metrics"]) == {"request_latency", "output_sequence_length"}
    assert isinstance(first["metrics"]["output_sequence_length"], int)


def test_items_stand_by_session_and_turn_whatever_ended_first(tmp_path):
    early = answered(sample(), list("abcd"), [None] * 4, n=np.array([3.0, 1, 2, 2]), turn=np.array([0.0, 0, 1, 0]))
    late = answered(sample(1), ["e"], [None], n=np.array([0.0]))
    items = written(tmp_path, early, late)["data"]
    assert "".join(item["response_text"] for item in items) == "ebdca"


def test_failed_requests_have_an_item_and_warmup_has_none(tmp_path):
    outcome, phase = sample()["outcome"].copy(), np.array([0.0, 1, 1, 1])
    outcome[1:3] = ERROR, CANCELLED
    batch = answered(sample(), ["warm", None, "half", "whole"], [None] * 4, outcome=outcome, phase=phase, n=np.arange(4.0))
    items = written(tmp_path, batch, phases=("warmup", "profiling"), kinds=("warmup", "profiling"))["data"]
    assert [item["response_text"] for item in items] == [None, "half", "whole"]


def test_a_run_without_requests_has_an_empty_file(tmp_path):
    assert written(tmp_path) == {"schema_version": "1.0", "data": []}


def test_it_is_written_on_request_alone():
    target = Target(Path("out"))
    assert not Outputs(target, OutputsOptions()).wanted() and not Outputs(target).wanted()
    assert Outputs(target, OutputsOptions(export_outputs_json=True)).wanted()
