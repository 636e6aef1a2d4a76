"""Whole runs with an engine in the worker: a stand-in for the library, with exactly its published names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from program import Program

LOAD = ("--model", "m", "--endpoint-type", "tensorrtllm_engine", "--tokenizer", "builtin", "--isl", 20, "--osl", 5,
        "--request-count", 6, "--concurrency", 2, "--ui", "none")  # fmt: skip


@pytest.fixture
def engine(aiperf: Program, tmp_path: Path) -> Path:
    """The directory of an engine, and the library where the program finds it."""
    (library := tmp_path / "library").mkdir()
    module = "from aiperf_endpoint_tensorrtllm_engine.standin import LLM, SamplingParams\n"
    (library / "tensorrt_llm.py").write_text(module)
    aiperf.environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(library), aiperf.environment.get("PYTHONPATH"))))
    (model := tmp_path / "tiny").mkdir()
    return model


def test_an_engine_is_loaded_once_and_measured(aiperf: Program, engine: Path) -> None:
    extra = ("--output-tokens-mean-deterministic", "--extra-inputs", "temperature:0.5")
    done = aiperf("profile", "--url", f"engine://{engine}", "--streaming", *LOAD, *extra)
    assert done.code == 0, done.err
    *calls, end = (engine / "calls").read_text().splitlines()
    assert calls == ["20 [('detokenize', False), ('end_id', None), ('max_tokens', 5), ('min_tokens', 5), ('pad_id', None),"
                     " ('temperature', 0.5)] True"] * 6 and end == "shutdown"  # fmt: skip
    results = done.json()
    assert {results[name]["avg"] for name in ("output_sequence_length",)} == {5}, "the ids are counted"
    assert results["input_sequence_length"]["avg"] == 20
    assert results["time_to_first_token"]["min"] >= 2 and results["inter_token_latency"]["min"] >= 2, "as the stand-in paused"
    assert results["measurement"]["clock"] == "read" and not results["measurement"]["stamps_missing"]


def test_an_engine_without_library_or_worker_is_refused(aiperf: Program, engine: Path) -> None:
    two = aiperf("profile", "--url", str(engine), *LOAD, "--workers-max", 2)
    assert two.code == 1 and "--workers-max 2 is not possible: the transport 'trtllm' has one worker" in two.err, two.err
    chat = aiperf("profile", "--model", "m", "--url", f"engine://{engine}")
    assert chat.code == 1 and "has the scheme 'engine', and the endpoint type 'chat' takes http" in chat.err, chat.err
    aiperf.environment.pop("PYTHONPATH")
    alone = aiperf("profile", "--url", str(engine), *LOAD)
    assert alone.code == 1 and "needs the Python package tensorrt_llm, which is not installed" in alone.err, alone.err
    assert "pip install 'aiperf-endpoint-tensorrtllm-engine[trtllm]'" in alone.err
