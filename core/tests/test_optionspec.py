"""Models as option specs, typed text as models, and errors that name what the person typed."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from aiperf.options import Finite, KernelOptions, Options, Word, option
from aiperf.optionspec import specs, validate
from aiperf.registry import Registry
from pydantic import AfterValidator, model_validator


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


def _even(value: int) -> int:
    if value % 2:
        raise ValueError("must be even")
    return value


class Sample(Options):
    length: int | None = option("--length", "-l", ge=1, le=9, group="Sample", help="How long.")
    share: Finite = option("--share", default=2.0, gt=0, lt=5, help="How much.")
    pair: Annotated[int, AfterValidator(_even)] = option("--pair", default=2, help="An even number.")
    on: bool = option("--on", default=True, negative="--off", help="Whether.")
    file: Path | None = option("--file", metavar="FILE", help="Where.")
    colour: Colour = option("--colour", default=Colour.RED, help="Which.")
    kind: Literal["one", "two"] = option("--kind", default="one", help="Which.")
    word: Word = option("--word", default="first_one", choices=("first_one", "second"), help="Which.")
    depths: list[int] = option("--depths", default=[8, 16], help="Depths.")
    names: list[str] | None = option("--names", arity="maybe", help="Names.")
    secret: str | None = option("--secret", secret=True, max_length=3, help="Hush.")
    inner: int = 5


SPECS = {spec.field: spec for spec in specs(Sample)}


@pytest.mark.parametrize(
    ("field", "kind", "arity", "metavar", "default", "choices"),
    [
        ("length", "int", "one", "INT", None, ()),
        ("share", "float", "one", "NUMBER", "2", ()),
        ("pair", "int", "one", "INT", "2", ()),
        ("on", "flag", "none", "", "on", ()),
        ("file", "path", "one", "FILE", None, ()),
        ("colour", "choice", "one", "WORD", "red", ("red", "blue")),
        ("kind", "choice", "one", "WORD", "one", ("one", "two")),
        ("word", "choice", "one", "WORD", "first_one", ("first_one", "second")),
        ("depths", "int", "many", "INT", "8,16", ()),
        ("names", "str", "maybe", "TEXT", None, ()),
    ],
)
def test_a_field_becomes_a_spec(field: Any, kind: Any, arity: Any, metavar: Any, default: Any, choices: Any) -> None:
    spec = SPECS[field]
    assert (spec.type, spec.arity, spec.metavar, spec.default, spec.choices) == (kind, arity, metavar, default, choices)


def test_a_field_without_flags_is_not_an_option() -> None:
    assert "inner" not in SPECS


def test_a_flag_with_values_is_a_contradiction() -> None:
    class Wrong(Options):
        on: bool = option("--on", default=False, arity="many", help="Whether.")

    with pytest.raises(ValueError, match="can't have arity many"):
        specs(Wrong)


def check(given: Any, typed: Any = None) -> Any:
    return validate(Sample, tuple(SPECS.values()), given, typed or {})


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"length": "3"}, "length", 3),
        ({"share": "2.5"}, "share", 2.5),
        ({"on": False}, "on", False),
        ({"file": "a/b"}, "file", Path("a/b")),
        ({"colour": "BLUE"}, "colour", Colour.BLUE),
        ({"kind": "Two"}, "kind", "two"),
        ({"word": "First-One"}, "word", "first_one"),
        ({"depths": ["24", "32"]}, "depths", [24, 32]),
        ({"names": []}, "names", []),
        ({}, "names", None),
        ({}, "depths", [8, 16]),
    ],
)
def test_typed_text_becomes_values(given: Any, field: Any, value: Any) -> None:
    made, errors = check(given)
    assert errors == [] and getattr(made, field) == value


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"length": "0"}, "--length: 0 is not allowed; must be at least 1"),
        ({"length": "10"}, "--length: 10 is not allowed; must be at most 9"),
        ({"length": "1.5"}, "--length: '1.5' is not a whole number"),
        ({"length": "many"}, "--length: 'many' is not a whole number"),
        ({"length": ""}, "--length: '' is not a whole number"),
        ({"share": "0"}, "--share: 0 is not allowed; must be more than 0"),
        ({"share": "5"}, "--share: 5 is not allowed; must be less than 5"),
        ({"share": "lots"}, "--share: 'lots' is not a number"),
        ({"share": "nan"}, "--share: 'nan' is not a number"),
        ({"pair": "3"}, "--pair: 3 is not allowed; must be even"),
        ({"colour": "green"}, "--colour: 'green' is not one of red, blue"),
        ({"word": "frist_one"}, "--word: 'frist_one' is not one of first_one, second"),
        ({"depths": ["8", "deep"]}, "--depths: 'deep' is not a whole number"),
        ({"secret": "hunter2"}, "--secret: '<redacted>' is not allowed; string should have at most 3 characters"),
    ],
)
def test_an_error_names_the_flag_the_value_and_the_rule(given: Any, message: Any) -> None:
    made, errors = check(given)
    assert made is None and [error.message for error in errors] == [message]
    assert all(error.exit_code == 2 for error in errors)


def test_an_error_names_the_flag_as_it_was_typed() -> None:
    assert check({"length": "0"}, {"length": "-l"})[1][0].message.startswith("-l: 0")


def test_all_errors_come_at_once_and_none_twice() -> None:
    _, errors = check({"length": "0", "share": "x", "word": "third", "colour": "green", "depths": ["a", "b"]})
    assert len(errors) == 6


def test_a_choice_that_is_near_is_suggested() -> None:
    assert check({"word": "secnd"})[1][0].hints == ("did you mean second?",)


def test_a_rule_of_the_whole_model_is_said_without_a_flag() -> None:
    class Both(Options):
        low: int = option("--low", default=1, help="Low.")

        @model_validator(mode="after")
        def _check(self) -> Both:
            raise ValueError("--low and --high exclude each other: drop one")

    assert validate(Both, specs(Both), {}, {})[1][0].message == "--low and --high exclude each other: drop one"


def test_no_message_shows_a_field_name_or_pydantic() -> None:
    wrong = {spec.field: ["?"] if spec.arity == "many" else "?" for spec in specs(KernelOptions) if spec.arity != "none"}
    _, errors = validate(KernelOptions, specs(KernelOptions), wrong, {})
    text = "\n".join(error.message for error in errors)
    assert len(errors) > 20 and "pydantic" not in text and "Input" not in text
    assert all(error.message.startswith("--") for error in errors)


def test_every_kernel_option_has_a_sentence_and_a_heading() -> None:
    for spec in specs(KernelOptions):
        assert spec.help.endswith(".") and spec.group, spec.field
        assert any(flag.startswith("--") for flag in spec.flags)


def test_the_kernel_manifest_holds_the_options_of_the_model() -> None:
    assert Registry([]).kernel_options == specs(KernelOptions), "run: aiperf plugins manifest core"
