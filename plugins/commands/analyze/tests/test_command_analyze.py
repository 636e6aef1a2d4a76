"""Sweeps of genai-perf as lines of ``aiperf profile``."""

import pytest
from aiperf import UsageError
from aiperf_command_analyze import Analyze, values_of_range
from aiperf_command_analyze.contract import AnalyzeContract
from aiperf_command_analyze.options import AnalyzeOptions


class TestItKeepsTheContract(AnalyzeContract):
    pass


@pytest.mark.parametrize(
    ("options", "words", "line"),
    [
        ({"sweep_range": "1:16"}, ("--model", "m"), "aiperf profile --model m --concurrency 1,2,4,8,16"),
        ({"sweep_type": "input_sequence_length", "sweep_range": "100:500:200"}, (), "aiperf profile --isl 100,300,500"),
        ({"sweep_type": "num_dataset_entries", "sweep_range": "8:32"}, (), "aiperf profile --num-dataset-entries 8,16,32"),
        ({"sweep_type": "request_rate", "sweep_list": ["0.5", "3"]}, (), "aiperf profile --request-rate 0.5,3"),
        ({"sweep_type": "batch_size", "sweep_list": ["3"]}, ("--url", "http://a b"),
         "aiperf profile --url 'http://a b' --prompt-batch-size 3"),
    ],
)  # fmt: skip
def test_a_sweep_is_a_list_on_an_option(capsys, options, words, line):
    assert Analyze().run(AnalyzeOptions(**options), words) == 0
    assert capsys.readouterr().out == f"{line}\n"


@pytest.mark.parametrize(
    ("text", "kind", "values"),
    [
        ("1:1", "concurrency", [1]), ("4:4", "request_rate", [4]), ("1:10:3", "request_rate", [1, 4, 7, 10]),
        ("0.1:0.3:0.1", "request_rate", [0.1, 0.2, 0.3]), ("5:6:10", "batch_size", [5]),
    ],
)  # fmt: skip
def test_a_range_has_both_ends(text, kind, values):
    assert values_of_range(text, kind) == pytest.approx(values)


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("1", "concurrency", "is not MIN:MAX"), ("1:2:3:4", "batch_size", "is not MIN:MAX"),
        ("1:9:2", "concurrency", "no step"), ("8:2", "batch_size", "below"),
        ("1:10", "concurrency", "10 is no power of two"), ("3:8", "batch_size", "3 is no power of two"),
        ("a:8", "batch_size", "'a' is not a whole number"), ("0:8", "batch_size", "'0' is not"),
        ("1:8:0", "batch_size", "'0' is not"), ("1:inf", "request_rate", "'inf' is not a number"),
        ("1:1e9:1", "request_rate", "more than 10,000 values"),
    ],
)  # fmt: skip
def test_a_range_of_another_form_is_refused(text, kind, said):
    with pytest.raises(UsageError) as caught:
        values_of_range(text, kind)
    assert said in caught.value.message and caught.value.lines()[1:]


def test_a_sweep_without_values_is_refused():
    with pytest.raises(UsageError, match="needs --sweep-range or --sweep-list"):
        Analyze().run(AnalyzeOptions(), ())


def test_two_ways_of_giving_values_exclude_each_other():
    (said,) = AnalyzeOptions(sweep_range="1:2", sweep_list=["1"]).problems({})
    assert said.startswith("--sweep-range and --sweep-list exclude each other")


@pytest.mark.parametrize("word", ["--concurrency", "--concurrency=3"])
def test_the_option_that_differs_is_not_given_twice(word):
    with pytest.raises(UsageError, match="has one value"):
        Analyze().run(AnalyzeOptions(sweep_range="1:2"), (word, "3"))
