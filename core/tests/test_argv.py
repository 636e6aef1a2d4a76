"""How many values an option takes, what is left over, and what is never shown."""

from __future__ import annotations

from typing import Any

import pytest
from aiperf.cli.commandline import CommandLine
from aiperf.redaction import redact
from aiperf.sdk.configuration import Option, OptionTarget
from aiperf.sdk.descriptor import OptionSpec

SPECS = (
    OptionSpec("stream", ("--streaming",), "Stream.", "flag", "none"),
    OptionSpec("plot", ("--auto-plot",), "Plot.", "flag", "none", negative="--no-auto-plot"),
    OptionSpec("loud", ("--extra-verbose", "-vv"), "Loud.", "flag", "none"),
    OptionSpec("count", ("--request-count", "--num-requests", "-n"), "Count.", "int", metavar="INT"),
    OptionSpec("key", ("--api-key",), "Key.", secret=True),
    OptionSpec("urls", ("--url", "-u"), "URLs.", arity="many"),
    OptionSpec("goodput", ("--goodput", "-g"), "SLOs.", arity="many"),
    OptionSpec("headers", ("--header", "-H"), "Header.", arity="many", metavar="NAME:VALUE", secret=True, commas=False),
    OptionSpec("extra", ("--extra-inputs",), "Extra.", arity="many", metavar="KEY:VALUE"),
    OptionSpec("gpu", ("--gpu-telemetry",), "GPU.", arity="maybe"),
)
OPTIONS = [Option(spec, (OptionTarget("", spec.field),)) for spec in SPECS]


def read(line: str | list[str], **more: Any) -> Any:
    return CommandLine(line.split() if isinstance(line, str) else line).resolve(OPTIONS, **more)


def values(line: str | list[str]) -> dict[str, object]:
    found = read(line)
    assert found.errors == []
    return {one.option.spec.field: one.values if one.on is None else one.on for one in found.given}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--streaming", {"stream": True}),
        ("--auto-plot", {"plot": True}),
        ("--no-auto-plot", {"plot": False}),
        ("-vv", {"loud": True}),
        ("--request-count 5", {"count": ["5"]}),
        ("--request-count=5", {"count": ["5"]}),
        ("-n 5", {"count": ["5"]}),
        ("-n5", {"count": ["5"]}),
        ("-n=5", {"count": ["5"]}),
        ("--request-count -5", {"count": ["-5"]}),
        ("--request-count -.5", {"count": ["-.5"]}),
        (["--request-count", ""], {"count": [""]}),
        (["--request-count="], {"count": [""]}),
        ("--request-count=--url", {"count": ["--url"]}),
        ("--request-count 1,2", {"count": ["1,2"]}),
        ("--url a b", {"urls": ["a", "b"]}),
        ("--url a --url b", {"urls": ["a", "b"]}),
        ("--url a,b", {"urls": ["a", "b"]}),
        ("-u a --streaming -u b,c d", {"urls": ["a", "b", "c", "d"], "stream": True}),
        ("--url=a,b --url c", {"urls": ["a", "b", "c"]}),
        ("--goodput a:1 b:2", {"goodput": ["a:1", "b:2"]}),
        (["--goodput", "a:1 b:2"], {"goodput": ["a:1 b:2"]}),
        ("-g a:1,b:2", {"goodput": ["a:1", "b:2"]}),
        (["-H", "Accept: a,b"], {"headers": ["Accept: a,b"]}),
        (["-H", "X:1", "-H", "Y:2,3"], {"headers": ["X:1", "Y:2,3"]}),
        ("-HX:1", {"headers": ["X:1"]}),
        (["--extra-inputs", '{"stop":["a","b"]}'], {"extra": ['{"stop":["a","b"]}']}),
        ("--extra-inputs a:1,b:2 c:3", {"extra": ["a:1", "b:2", "c:3"]}),
        ("--api-key -abc", {"key": ["-abc"]}),
        ("--api-key --abc", {"key": ["--abc"]}),
        ("--api-key --abc=d --streaming", {"key": ["--abc=d"], "stream": True}),
        ("--url -a b --streaming", {"urls": ["-a", "b"], "stream": True}),
        ("--request-count -x", {"count": ["-x"]}),
        ("--gpu-telemetry", {"gpu": []}),
        ("--gpu-telemetry --streaming", {"gpu": [], "stream": True}),
        ("--gpu-telemetry pynvml", {"gpu": ["pynvml"]}),
        ("--gpu-telemetry http://a:1 http://b:1,dashboard", {"gpu": ["http://a:1", "http://b:1", "dashboard"]}),
    ],
)
def test_arities(line: Any, expected: Any) -> None:
    assert values(line) == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--request-count 1 --request-count 2", "--request-count is specified multiple times"),
        ("--request-count 1 --num-requests 2", "--num-requests is specified multiple times, first as --request-count"),
        ("--auto-plot --no-auto-plot", "--no-auto-plot is specified multiple times, first as --auto-plot"),
        ("--streaming true", "--streaming takes no value, and 'true' was given"),
        ("--streaming=true", "--streaming takes no value, and 'true' was given"),
        ("--request-count", "--request-count needs a value"),
        ("--request-count --streaming", "--request-count needs a value"),
        ("--url", "--url needs a value"),
        ("--api-key -n 5", "--api-key needs a value"),
        ("--api-key --help", "--api-key needs a value"),
        ("--api-key --", "--api-key needs a value"),
        ("--bogus", "unknown option --bogus"),
        ("--bogus=sk-123", "unknown option --bogus"),
        ("-x", "unknown option -x"),
    ],
)
def test_what_cannot_be_read_is_said(line: Any, message: Any) -> None:
    assert [str(error) for error in read(line).errors] == [message]


@pytest.mark.parametrize(
    ("given", "hints"),
    [
        ("--stremaing", ("did you mean --streaming?",)),
        ("--request-cuont", ("did you mean --request-count?",)),
        ("--bogus", ("see aiperf COMMAND --help",)),
        ("--foreign", ("do it otherwise",)),
    ],
)
def test_hints_are_close_matches_or_the_help(given: Any, hints: Any) -> None:
    assert read(given, extra={"--foreign": "do it otherwise"}.get).errors[0].hints == hints


def test_the_value_of_an_unknown_option_is_not_left_over_too() -> None:
    found = read("--bogus 5 --request-count 3 word")
    assert len(found.errors) == 1 and found.words == ["word"]


def test_an_option_with_a_slip_is_no_value_of_the_one_before_it() -> None:
    assert [str(error) for error in read("--url --stremaing").errors] == ["--url needs a value", "unknown option --stremaing"]


def test_no_error_shows_a_key_that_begins_like_an_option() -> None:
    found = read("--api-key --url-key-123 --bogus")
    assert [str(error) for error in found.errors] == ["unknown option --bogus"]
    assert found.shown[:2] == ["--api-key", "<redacted>"]


def test_all_errors_are_collected() -> None:
    assert len(read("--bogus --request-count 1 -n 2 --streaming=no --url").errors) == 4


def test_dashes_separate_words_only_where_they_may() -> None:
    assert read("--url a -- --url b").words == ["--url", "b"]
    assert "drop it" in str(read("--url a -- --url b", dashes=False).errors[0])


def test_help_is_seen_anywhere_but_in_a_value() -> None:
    assert read("--url a --help").help
    assert not read("--api-key=--help").help


@pytest.mark.parametrize(
    ("line", "field", "found"),
    [
        ("--bogus x --url a -n 5 b --url c,d", "urls", ["a", "c", "d"]),
        ("-n5 --bogus", "count", ["5"]),
        ("--bogus -n=5", "count", ["5"]),
        ("--streaming", "urls", []),
        ("-- --url a", "urls", []),
    ],
)
def test_an_early_option_is_read_before_the_others_are_known(line: str, field: str, found: list[str]) -> None:
    assert CommandLine(line.split()).early(next(spec for spec in SPECS if spec.field == field)) == found


def test_the_flag_is_remembered_as_typed() -> None:
    assert read("--num-requests 5 -u a").typed() == {"count": "--num-requests", "urls": "-u"}


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("--api-key sk-123 --url a", "--api-key <redacted> --url a"),
        ("--api-key=sk-123", "--api-key=<redacted>"),
        (["-H", "Authorization: Bearer sk-123"], "-H Authorization:<redacted>"),
        (["-HX-Key:sk-123"], "-HX-Key:<redacted>"),
        (["--header={\"X\":\"sk-123\"}"], "--header=<redacted>"),
        ("--url http://me:sk-123@host:1/v1", "--url http://<redacted>@host:1/v1"),
        ("--url http://host/v1?key=sk-123&x=1", "--url http://host/v1?key=<redacted>&x=1"),
        ("--url a,http://host?sub_token=sk-123", "--url a,http://host?sub_token=<redacted>"),
        ("--extra-inputs api_key:sk-123,max_tokens:5", "--extra-inputs api_key:<redacted>"),
        (["--extra-inputs", '{"api_key": "sk-123", "n": 2}'], '--extra-inputs {"api_key": "<redacted>", "n": 2}'),
        ("word http://me:sk-123@host", "word http://<redacted>@host"),
        ("-- http://me:sk-123@host", "-- http://<redacted>@host"),
        ("--goodput time_to_first_token:250", "--goodput time_to_first_token:250"),
        ("--num-requests 5 --ui None", "--num-requests 5"),
    ],
)  # fmt: skip
def test_secrets_are_not_shown_and_the_rest_is_as_typed(line: Any, shown: Any) -> None:
    found = " ".join(read(line).shown)
    assert found.startswith(shown) and "sk-123" not in found


@pytest.mark.parametrize("text", ["time_to_first_token:250", "max_tokens:5", "o200k_base", "http://host:8000/v1?x=1", "a@b"])
def test_what_is_no_secret_stays(text: Any) -> None:
    assert redact(text) == text
