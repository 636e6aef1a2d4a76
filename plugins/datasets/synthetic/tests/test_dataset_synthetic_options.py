"""What can be typed about synthetic data, and what excludes what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiperf.registry.option_specs import validate
from aiperf.registry.specs import specs
from aiperf_dataset_synthetic.lengths import Pair, pairs
from aiperf_dataset_synthetic.options import SyntheticOptions
from aiperf_dataset_synthetic.ranges import ratios, window

SPECS = {spec.field: spec for spec in specs(SyntheticOptions)}

NEITHER = 'is neither a number nor {"input": 0.3, "output": 0.5}'
POOL = {"prefix_pool": 1, "prefix_length": 2}


def problems(typed: dict[str, str] | None = None, **options: Any) -> list[str]:
    return SyntheticOptions(**options).problems(typed or {})


def refused(*given: tuple[str, str]) -> list[str]:
    values, typed = dict(given), {field: SPECS[field].flags[-1] for field, _ in given}
    _, errors = validate(SyntheticOptions, list(SPECS.values()), values, typed)
    return [error.message for error in errors]


def test_nothing_typed_can_be_run() -> None:
    assert problems() == []


@pytest.mark.parametrize(
    ("options", "first", "second"),
    [
        ({"seq_dist": "1,1:100", "isl": 550}, "--seq-dist", "--isl"),
        ({"seq_dist": "1,1:100", "isl_stddev": 1.0}, "--seq-dist", "--isl-stddev"),
        ({"seq_dist": "1,1:100", "osl": 5}, "--seq-dist", "--osl"),
        ({"seq_dist": "1,1:100", "osl_stddev": 5.0}, "--seq-dist", "--osl-stddev"),
        ({"isl_distribution": "5", "isl": 9}, "--isl-distribution", "--isl"),
        ({"isl_distribution": "5", "isl_stddev": 9.0}, "--isl-distribution", "--isl-stddev"),
        ({"osl_distribution": "5", "osl": 9}, "--osl-distribution", "--osl"),
        ({"seq_dist": "1,1:100", "osl_distribution": "5"}, "--seq-dist", "--osl-distribution"),
        ({"range_ratio": "0.1", "isl": 9, "osl": 9, "isl_stddev": 1.0}, "--random-range-ratio", "--isl-stddev"),
        ({"range_ratio": "0.1", "isl": 9, "osl": 9, "osl_stddev": 1.0}, "--random-range-ratio", "--osl-stddev"),
        ({"range_ratio": "0.1", "seq_dist": "1,1:100"}, "--random-range-ratio", "--seq-dist"),
        ({**POOL, "shared_system_length": 3}, "--num-prefix-prompts", "--shared-system-prompt-length"),
        ({**POOL, "user_context_length": 3}, "--num-prefix-prompts", "--user-context-prompt-length"),
        ({"system_prompt": "x", **POOL}, "--system-prompt", "--num-prefix-prompts"),
        ({"system_prompt": "x", "shared_system_length": 3}, "--system-prompt", "--shared-system-prompt-length"),
        ({"system_prompt": "x", "user_context_length": 3}, "--system-prompt", "--user-context-prompt-length"),
    ],
)  # fmt: skip
def test_two_that_exclude_each_other_are_both_named(options: dict[str, Any], first: str, second: str) -> None:
    (sentence,) = problems(**options)
    message, hint = sentence.split("\n")
    assert message.startswith(f"{first} and {second} exclude each other: ")
    assert hint == f"drop {first} or {second}"


def test_a_file_excludes_what_a_text_excludes(tmp_path: Path) -> None:
    path = tmp_path / "system.txt"
    path.write_text("x")
    assert problems(system_prompt_file=path) == []
    found = problems(system_prompt_file=path, system_prompt="x", shared_system_length=4)
    assert [sentence.partition(" exclude")[0] for sentence in found] == [
        "--system-prompt and --shared-system-prompt-length",
        "--system-prompt-file and --shared-system-prompt-length",
        "--system-prompt and --system-prompt-file",
    ]


@pytest.mark.parametrize(
    ("options", "field", "needed"),
    [
        ({"osl_stddev": 3.0}, "--osl-stddev", "--osl"),
        ({"turn_delay_stddev_ms": 3.0}, "--session-turn-delay-stddev", "--session-turn-delay-mean"),
        ({"prefix_length": 3}, "--prefix-prompt-length", "--num-prefix-prompts"),
        ({"range_ratio": "0.3", "osl": 5}, "--random-range-ratio", "--isl"),
        ({"range_ratio": "0.3", "isl": 5}, "--random-range-ratio", "--osl"),
        ({"corpus_style": "vllm"}, "--random-corpus-style", "--random-range-ratio"),
        ({"prefix_pool": 3}, "--num-prefix-prompts", "--prefix-prompt-length"),
    ],
)
def test_what_needs_another_says_so(options: dict[str, Any], field: str, needed: str) -> None:
    (sentence,) = problems(**options)
    assert sentence.startswith(f"{field} needs {needed}: ")
    assert sentence.endswith(f"\nadd {needed}, or drop {field}")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"isl": 0}, "--isl 0 switches text off"),
        ({"prompt_batch_size": 0}, "--prompt-batch-size 0 leaves nothing to send"),
        ({"isl": 1, "osl": 1, "range_ratio": "0.5"}, "--random-range-ratio 0.5 with --isl 1 has prompts of 0 to 2 tokens"),
        ({"isl": 9, "osl": 9, "range_ratio": "1"}, "--random-range-ratio 1: a ratio of vllm's windows is below 1"),
        (
            {"isl": 9, "osl": 9, "range_ratio": '{"input": 0, "output": 1}', "corpus_style": "sglang"},
            '--random-range-ratio {"input": 0, "output": 1}: sglang\'s windows have one ratio',
        ),
        ({"system_prompt": ""}, "--system-prompt is empty"),
        ({"system_prompt_file": Path("missing.txt")}, "--system-prompt-file: there is no file missing.txt"),
    ],
)
def test_what_leaves_nothing_to_send_is_refused(options: dict[str, Any], said: str) -> None:
    (sentence,) = problems(**options)
    assert sentence.startswith(said)


def test_messages_name_the_flags_that_were_typed() -> None:
    typed = {"osl_stddev": "--output-tokens-stddev"}
    assert problems(typed, osl_stddev=3.0)[0].startswith("--output-tokens-stddev needs --osl")


def test_all_problems_are_told_at_once() -> None:
    assert len(problems(isl=0, prompt_batch_size=0, osl_stddev=1.0, prefix_length=5)) == 4


def test_no_delay_on_purpose_may_have_a_spread() -> None:
    assert problems(turn_delay_mean_ms=0.0, turn_delay_stddev_ms=5.0) == []


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("isl", "-1", "--isl: -1 is not allowed; must be at least 0"),
        ("isl", "1.5", "--isl: '1.5' is not a whole number"),
        ("osl", "0", "--osl: 0 is not allowed; must be at least 1"),
        ("isl_stddev", "-2", "--isl-stddev: -2 is not allowed; must be at least 0"),
        ("isl_stddev", "inf", "--isl-stddev: inf is not allowed; must be a finite number"),
        ("turns_mean", "2.5", "--session-turns-mean: '2.5' is not a whole number"),
        ("turns_mean", "0", "--session-turns-mean: 0 is not allowed; must be at least 1"),
        ("shared_system_length", "0", "--shared-system-prompt-length: 0 is not allowed; must be at least 1"),
        ("range_ratio", "1.5", "--random-range-ratio: the ratio 1.5 is outside 0 to 1"),
        ("range_ratio", "nan", f"--random-range-ratio: 'nan' {NEITHER}"),
        ("range_ratio", '{"input": 1}', f"--random-range-ratio: '{{\"input\": 1}}' {NEITHER}"),
        ("corpus_style", "vlm", "--random-corpus-style: 'vlm' is not one of vllm, sglang"),
        ("prompt_corpus", "poems", "--prompt-corpus: 'poems' is not one of sonnet, coding, random"),
        ("seq_dist", "1,1:50", "--sequence-distribution: the percentages of the sequence distribution total 50, not 100"),
    ],
)
def test_values_out_of_range_get_a_sentence(field: str, text: str, said: str) -> None:
    assert refused((field, text)) == [said]


@pytest.mark.parametrize(
    ("field", "flags"),
    [
        ("isl", ("--prompt-input-tokens-mean", "--synthetic-input-tokens-mean", "--isl")),
        ("isl_stddev", ("--prompt-input-tokens-stddev", "--synthetic-input-tokens-stddev", "--isl-stddev")),
        ("osl", ("--prompt-output-tokens-mean", "--output-tokens-mean", "--osl")),
        ("osl_stddev", ("--prompt-output-tokens-stddev", "--output-tokens-stddev", "--osl-stddev")),
        ("seq_dist", ("--seq-dist", "--sequence-distribution")),
        ("prompt_batch_size", ("--prompt-batch-size", "--batch-size-text", "--batch-size", "-b")),
        ("turns_mean", ("--conversation-turn-mean", "--session-turns-mean")),
        ("turn_delay_mean_ms", ("--conversation-turn-delay-mean", "--session-turn-delay-mean")),
        ("prefix_pool", ("--prompt-prefix-pool-size", "--prefix-prompt-pool-size", "--num-prefix-prompts")),
        ("prefix_length", ("--prompt-prefix-length", "--prefix-prompt-length")),
    ],
)
def test_every_usual_spelling_is_known(field: str, flags: tuple[str, ...]) -> None:
    assert SPECS[field].flags == flags


PAIRS = (Pair(128, 64, 25.0), Pair(512, 128, 75.0, 40.0, 8.0))


@pytest.mark.parametrize(
    "text",
    [
        "128,64:25;512|40,128|8:75",
        " 128 , 64 : 25 ; 512 | 40 , 128 | 8 : 75 ; ",
        "[(128,64):25,(512|40,128|8):75]",
        "[(128, 64) : 25, (512|40, 128|8) : 75]",
        '{"pairs":[{"isl":128,"osl":64,"prob":25},{"isl":512,"osl":128,"prob":75,"isl_stddev":40,"osl_stddev":8}]}',
        '[{"isl":128,"osl":64,"probability":25},{"isl":512,"osl":128,"probability":75,"isl_stddev":40,"osl_stddev":8}]',
    ],
)
def test_a_sequence_distribution_has_four_forms(text: str) -> None:
    assert pairs(text) == PAIRS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not ISL,OSL:PERCENT"),
        ("128:100", "'128:100' in the sequence distribution '128:100' is not ISL,OSL:PERCENT"),
        ("128,64:25;;512,128:75", "'' in the sequence"),
        ("128,64:25;512,128:70", "total 95, not 100"),
        ("0,64:100", "has a length below 1"),
        ("128,64:-25;1,1:125", "outside 0 to 100"),
        ("128,6.5:100", "is not ISL,OSL:PERCENT"),
        ("1|-3,5:100", "has a standard deviation that is not a finite number"),
        ("1|1e999,5:100", "has a standard deviation that is not a finite number"),
        ("1|e,5:100", "has a bad number"),
        ("[(128,64):25,(512,128:75]", "is not ISL,OSL:PERCENT"),
        ("[(128,64):25,junk,(512,128):75]", "is not ISL,OSL:PERCENT"),
        ("[(128,64):100", "has no closing bracket"),
        ('{"pairs":[{"isl":128,"osl":64}]}', "missing required field `prob`"),
        ('{"pairs":[{"isl":128,"osl":64,"prob":100,"typo":1}]}', "unknown field `typo`"),
        ('{"pairs":', "the JSON of the sequence distribution has another form than expected"),
        ('{"pairs":[]}', "total 0, not 100"),
        ('[{"isl":128,"osl":64,"prob":100}]', "unknown field `prob`"),
    ],
)
def test_a_malformed_sequence_distribution_is_refused_and_never_skipped(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        pairs(text)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("mean", "ratio", "style", "bounds"),
    [
        (100, "0.1", "vllm", (90, 110)),  # 100 * (1 + 0.1) is more than 110 in floating point
        (10, "0.33", "vllm", (6, 14)),
        (7, "0", "vllm", (7, 7)),
        (100, "0.29", "sglang", (29, 100)),  # 100 * 0.29 is less than 29 in floating point
        (3, "0.1", "sglang", (1, 3)),
        (9, "1", "sglang", (9, 9)),
    ],
)
def test_the_bounds_of_a_window_are_exact(mean: int, ratio: str, style: str, bounds: tuple[int, int]) -> None:
    assert window(mean, ratios(ratio).input, style) == bounds
