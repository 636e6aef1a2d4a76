"""Models as option specs, typed text as models, and errors that name what the person typed."""

from __future__ import annotations

import math
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from aiperf.planning.kernel_options import KernelOptions
from aiperf.registry import option_specs
from aiperf.registry.option_specs import validate
from aiperf.registry.registry import Registry
from aiperf.registry.specs import specs
from aiperf.sdk.options import After, EncodedOptions, Finite, Options, Word, option, undecodable


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
    pair: Annotated[int, After(_even)] = option("--pair", default=2, help="An even number.")
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


class Times(Options):
    limit_s: float | None = option("--limit", gt=0, metavar="SECONDS", help="How long.")
    ratio: float | None = option("--ratio", metavar="NUMBER", help="How much.")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30.0), ("30s", 30.0), ("1.5m", 90.0), ("5min", 300.0), ("2h", 7200.0), ("200ms", 0.2), ("1 M", 60.0), (".5s", 0.5)],
)
def test_seconds_may_have_a_unit(text: str, seconds: float) -> None:
    made, errors = validate(Times, specs(Times), {"limit_s": text}, {})
    assert errors == [] and made is not None and made.limit_s == pytest.approx(seconds)


@pytest.mark.parametrize(("field", "text"), [("limit_s", "30x"), ("limit_s", "s"), ("limit_s", "1d"), ("ratio", "30s")])
def test_a_unit_that_is_unknown_or_out_of_place_is_no_number(field: str, text: str) -> None:
    assert [error.message for error in validate(Times, specs(Times), {field: text}, {})[1]] == [
        f"--{'limit' if field == 'limit_s' else field}: {text!r} is not a number"
    ]


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


NUMBERS = ("0", "1", "-1", "007", "9", "1.0", "1.5", "1e1", "-0", "1_0", " 7", "٣", "inf", "nan", "", "9" * 20, "0.1" * 9)
TEXTS = ("one", "red", "RED", "First-One", "true", "on", "a/b", "~", " x ", "äö", "abcd")


@pytest.mark.parametrize("options_class", [Sample, KernelOptions], ids=lambda options_class: options_class.__name__)
def test_the_quick_conversion_is_that_of_pydantic(options_class: type[Options]) -> None:
    many = {spec.field for spec in specs(options_class) if spec.arity in ("many", "maybe")}
    model, quick = option_specs.model_of(options_class), 0
    for field in options_class.option_defaults:
        for text in (*NUMBERS, *TEXTS, True, False):
            for value in ([], [text], ["1", text]) if field in many else (text,):
                plain = option_specs._plainly(options_class, {field: value})
                if plain is not None:
                    quick += 1
                    want = getattr(model.model_validate({field: value}), field)
                    assert (plain[field], type(plain[field])) == (want, type(want)), (field, value)
    assert quick > 100


def test_an_error_names_the_flag_as_it_was_typed() -> None:
    assert check({"length": "0"}, {"length": "-l"})[1][0].message.startswith("-l: 0")


def test_all_errors_come_at_once_and_none_twice() -> None:
    _, errors = check({"length": "0", "share": "x", "word": "third", "colour": "green", "depths": ["a", "b"]})
    assert len(errors) == 6


def test_a_choice_that_is_near_is_suggested() -> None:
    assert check({"word": "secnd"})[1][0].hints == ("did you mean second?",)


class Range(msgspec.Struct, frozen=True):
    low: float
    high: float = float("inf")


class Travel(Options):
    """One option of each kind that JSON has no word for."""

    file: Path | None = option("--file", help="Where.")
    limit: float = option("--limit", default=1.0, help="How much.")
    colour: Colour = option("--colour", default=Colour.RED, help="Which.")
    pair: tuple[int, int] = option("--pair", default=(1, 2), help="Two.")
    ranges: list[Range] = option("--range", default=[], help="Several.")
    range: Range | None = option("--one-range", help="One.")
    key: str = option("--key", default=..., secret=True, help="Hush.")
    words: Annotated[tuple[str, ...], After(lambda words: words)] = option("--words", default=(), help="Words.")


def travelled(options: Options) -> Any:
    return msgspec.json.decode(msgspec.json.encode(EncodedOptions.of(options)), type=EncodedOptions).decoded()


def test_options_arrive_in_another_process_with_their_types() -> None:
    given: Any = {
        "file": "a/b", "limit": "inf", "colour": "BLUE", "pair": ["3", "4"], "ranges": ['{"low": 1}', '{"low": 2, "high": 3}'],
        "range": '{"low": 0}', "key": "k", "words": ["a", "b"],
    }  # fmt: skip
    options, errors = validate(Travel, specs(Travel), given, {})
    assert errors == []
    assert options == Travel(
        file=Path("a/b"), limit=math.inf, colour=Colour.BLUE, pair=(3, 4), ranges=[Range(1), Range(2, 3)], range=Range(0),
        key="k", words=("a", "b"),
    )  # fmt: skip
    assert travelled(options) == options and isinstance(travelled(options).file, Path)


def test_the_given_fields_are_known_in_another_process() -> None:
    options = travelled(Travel(key="k", limit=1.0))
    assert options.fields_set == travelled(options).fields_set == {"key", "limit"}


def test_a_secret_that_was_not_written_arrives_as_none() -> None:
    encoded = EncodedOptions.of(Travel(key="k"))
    assert EncodedOptions(encoded.options_class, {**encoded.values, "key": None}).decoded().key is None


def test_a_struct_is_typed_as_json() -> None:
    _, errors = validate(Travel, specs(Travel), {"key": "k", "range": "wide"}, {})
    assert [error.message for error in errors] == [
        "--one-range: 'wide' is no JSON object of low, high: JSON is malformed: invalid character (byte 0)"
    ]


def test_options_are_frozen_and_hide_secrets() -> None:
    options = Travel(key="hunter2")
    with pytest.raises(AttributeError, match="frozen"):
        options.limit = 2.0  # type: ignore[misc]
    assert "hunter2" not in repr(options)


@pytest.mark.parametrize("values", [{}, {"key": "k", "other": 1}])
def test_a_missing_or_unknown_option_is_a_type_error(values: Any) -> None:
    with pytest.raises(TypeError):
        Travel(**values)


def test_defaults_are_not_shared() -> None:
    Travel(key="k").ranges.append(Range(1))
    assert Travel(key="k").ranges == []


def test_a_reserved_name_is_no_option() -> None:
    with pytest.raises(TypeError, match="can't be called fields_set"):

        class Wrong(Options):
            fields_set: int = option("--fields", help="Fields.")  # type: ignore[assignment]


class Strange:
    pass


class Absent(Options):
    when: Nowhere = option("--when", help="When.")  # type: ignore[name-defined]  # noqa: F821


class Odd(Options):
    what: Strange | None = option("--what", help="What.")


class Mixed(Options):
    what: Path | str = option("--what", default="", help="What.")


@pytest.mark.parametrize(
    ("options_class", "reason"),
    [
        (Odd, "the option what has the type Strange, which no other process can decode"),
        (Absent, "its types can't be resolved: name 'Nowhere' is not defined"),
        (Mixed, "the option what can't be decoded in another process: Type unions containing a custom type"),
        (Strange, "it is no subclass of aiperf.Options"),
    ],
)
def test_a_class_that_no_worker_can_rebuild_is_recognised(options_class: Any, reason: str) -> None:
    assert (undecodable(options_class) or "").startswith(reason)


@pytest.mark.parametrize("options_class", [Sample, Travel, KernelOptions])
def test_a_class_of_usual_types_can_be_rebuilt(options_class: Any) -> None:
    assert undecodable(options_class) is None


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


class Shares(Options):
    shares: list[float] = option("--shares", default=[], gt=0, le=1, min_length=2, help="Shares.")


@pytest.mark.parametrize(("given", "message"), [
    (["0.5", "0"], "--shares: 0 is not allowed; must be more than 0"),
    (["2", "0.5"], "--shares: 2 is not allowed; must be at most 1"),
    (["1e-1", ".5"], None), (["0.5"], "--shares"),
])  # fmt: skip
def test_limits_of_a_list_of_numbers_are_those_of_each(given: list[str], message: str | None) -> None:
    values, errors = validate(Shares, specs(Shares), {"shares": given}, {})
    assert values == (None if message else Shares(shares=[0.1, 0.5]))
    assert len(errors) == (message is not None)
    assert all(message is not None and message in error.message for error in errors)
