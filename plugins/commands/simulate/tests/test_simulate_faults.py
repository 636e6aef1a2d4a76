"""The language of faults, and the options that become a scenario."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import aiperf_command_simulate
import msgspec
import pytest
import yaml
from aiperf.errors import ConfigErrors
from aiperf.parts.tools import specs, validate
from aiperf.sdk.descriptor import OptionSpec
from aiperf_command_simulate.faults import FaultError, Faults, Odds, draw, parse, parse_odds
from aiperf_command_simulate.options import SimulateOptions
from aiperf_command_simulate.scenario import scenario
from aiperf_command_simulate.words import WORDS, Wording


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("", Faults()),
        ("fail=500", Faults(status=500)),
        ("status=429, retry_after=2.5", Faults(status=429, retry_after_s=2.5)),
        ("cut=3", Faults(cut=3)),
        ("Stall=5:0.4; slow-first=1.5", Faults(stall_after=5, stall_ns=400_000_000, slow_first_ns=1_500_000_000)),
        ("error=0,no_done,no_usage,silent", Faults(error=0, done=False, usage=False, silent=True)),
        ("lines=mixed,framing=eof,tokens=7,reasoning=0,tokens_per_chunk=2",
         Faults(lines="mixed", framing="eof", tokens=7, reasoning=0, tokens_per_chunk=2)),
    ],
)  # fmt: skip
def test_words_become_faults(text, faults):
    assert parse(text) == faults


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("explode", "'explode' is no fault; known are fail=STATUS"),
        ("fail=200", "200 is no status of a failure"),
        ("cut=-1", "-1 is less than 0"),
        ("cut=x", "it is written cut=CHUNKS"),
        ("stall=3", "it is written stall=CHUNKS:SECONDS"),
        ("stall=0:1", "0 is less than 1"),
        ("slow_first=nan", "is no time"),
        ("lines=none", "'none' is none of lf, crlf, cr, mixed"),
        ("silent=yes", "it takes no value"),
    ],
)
def test_a_word_that_means_nothing_gets_a_sentence(text, said):
    with pytest.raises(FaultError, match=re.escape(said)):
        parse(text)


def test_the_latter_fault_wins_where_both_speak():
    assert parse("cut=3,tokens=5").over(parse("cut=1,slow_first=1")) == parse("cut=3,tokens=5,slow_first=1")


@pytest.mark.parametrize("text", ["cut=3@", "cut=3@2", "cut=3@x", "cut=3@-0.1"])
def test_a_share_is_from_nought_to_one(text):
    with pytest.raises(FaultError, match="is no share"):
        parse_odds(text)


def test_a_share_of_requests_is_hit_whatever_else_goes_wrong():
    alone = [draw([parse_odds("cut=3@0.25")], dice) for dice in [random.Random(1)] for _ in range(4000)]
    assert 900 < sum(hit.cut == 3 for hit in alone) < 1100
    assert draw([Odds(Faults(cut=1), 0.0)], random.Random(0)) == Faults()
    assert draw([parse_odds("cut=2")], random.Random(0)) == Faults(cut=2)


def test_defaults_make_a_scenario():
    made = scenario(SimulateOptions())
    assert (made.host, made.port, made.models, made.tls, made.odds) == ("127.0.0.1", 8000, (), None, ())
    assert (made.engine.decode_ns, made.engine.prefill_ns, made.engine.first_token_ns) == (8_000_000, 20_000, None)


def test_options_arrive_in_the_units_of_the_engine():
    made = scenario(SimulateOptions(decode_ms=0.5, decode_batch_us=2, first_token_ms=3, freeze_every_s=2, freeze_for_s=0.5))
    engine = made.engine
    assert (engine.decode_ns, engine.decode_batch_ns, engine.first_token_ns) == (500_000, 2_000, 3_000_000)
    assert (engine.freeze_every_ns, engine.freeze_for_ns) == (2_000_000_000, 500_000_000)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"faults": ["cat=3"]}, "--fault cat=3: 'cat=3' is no fault"),
        ({"freeze_every_s": 1}, "--freeze-every needs --freeze-for"),
        ({"freeze_for_s": 1}, "--freeze-for needs --freeze-every"),
        ({"freeze_every_s": 1, "freeze_for_s": 1}, "leaves no time to work"),
        ({"tls_key": "k.pem"}, "--tls-key needs --tls-cert"),
        ({"tls_cert": "/nowhere/c.pem"}, "--tls-cert /nowhere/c.pem can't be used"),
        ({"tokens": 500, "max_context": 400}, "--tokens 500 leaves no room"),
        ({"block_size": 500, "max_context": 400}, "--block-size 500 is larger"),
    ],
)
def test_options_that_contradict_each_other_get_a_sentence(options, said):
    with pytest.raises(ConfigErrors) as caught:
        scenario(SimulateOptions(**options))
    assert any(said in line for line in caught.value.lines())


def test_all_contradictions_are_reported_together():
    with pytest.raises(ConfigErrors) as caught:
        scenario(SimulateOptions(faults=["x", "y"], freeze_for_s=1, tls_key="k"))
    assert len(caught.value.errors) == 4


@pytest.mark.parametrize("options", [{"port": 70000}, {"jitter": 1}, {"decode_ms": 1e999}, {"fail_rate": 1.1}, {"tokens": 0}])
def test_values_out_of_range_are_refused(options):
    made, errors = validate(SimulateOptions, specs(SimulateOptions), options, {})
    assert made is None and len(errors) == 1


def test_the_text_is_as_long_as_it_should_be_and_continues():
    wording = Wording(12345)
    whole = wording.text(0, 50)
    assert whole == wording.text(0, 20) + wording.text(20, 50)
    assert len(whole.split()) == 50
    assert len(set(whole.split())) == 50
    assert len(WORDS) == len(set(WORDS))


def test_every_word_is_one_token_of_o200k():
    found = entry_points(group="aiperf.tokenizers").select(name="builtin")
    if not found:
        pytest.skip("needs the built-in tokenizer's package, for o200k_base without a network")
    tokenizer = next(iter(found)).load()().open("builtin")
    assert {word: tokenizer.count(word) for word in WORDS if tokenizer.count(word) != 1} == {}
    text = "".join(WORDS)
    assert tokenizer.count(text) == len(WORDS)
    assert tokenizer.count(Wording(7).text(0, 1000)) == 1000


def test_the_manifest_lists_the_options_that_the_model_has():
    manifest = yaml.safe_load((Path(aiperf_command_simulate.__file__).parent / "aiperf.yaml").read_text())
    (row,) = manifest["plugins"]
    assert msgspec.convert(row["options"], tuple[OptionSpec, ...]) == specs(SimulateOptions)


@pytest.mark.parametrize("name", ["pydantic", "httptools", "uvloop", "asyncio"])
def test_the_command_imports_nothing_heavy_before_it_runs(name):
    code = f"import sys, aiperf_command_simulate; sys.exit({name!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
