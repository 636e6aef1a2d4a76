"""Distributions of prompt and answer lengths."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aiperf import Capabilities, DatasetContext, Turn
from aiperf_dataset_synthetic.contract import Bytes
from aiperf_dataset_synthetic.dataset import Synthetic
from aiperf_dataset_synthetic.distributions import distribution
from aiperf_dataset_synthetic.file import FileDefaults
from aiperf_dataset_synthetic.options import CommonOptions, SyntheticOptions

CAN = Capabilities(path="/chat", system_message=True, multi_turn=True, tokenizes_input=True, produces_tokens=True)


def drawn(text: str, count: int = 4000) -> list[int]:
    known = distribution(text)
    return [known.length(7, "lengths", index) for index in range(count)]


def turns(count: int, **options: Any) -> list[Turn]:
    context = DatasetContext(count, 7, True, Bytes(), CAN)
    return [entry.turns[0] for entry in Synthetic(SyntheticOptions(**options), context)]


def test_each_form_is_drawn_from() -> None:
    assert set(drawn("37")) == set(drawn('{"value": 37}')) == set(drawn('{"type": "normal", "mean": 37}')) == {37}
    normal = drawn('{"mean": 300, "stddev": 30.5}')
    assert statistics.fmean(normal) == pytest.approx(300, abs=2)
    assert statistics.stdev(normal) == pytest.approx(30.5, abs=1.5)
    log_normal = drawn('{"mean": 500, "median": 300}')
    assert statistics.median(log_normal) == pytest.approx(300, rel=0.05)
    assert statistics.fmean(log_normal) == pytest.approx(500, rel=0.07)
    deviation = statistics.stdev(map(math.log, log_normal))
    assert deviation == pytest.approx(math.sqrt(2 * math.log(500 / 300)), rel=0.04)
    mixture = drawn('{"peaks": [{"mean": 100, "stddev": 5, "weight": 3}, {"mean": 4000, "median": 3900}]}')
    small = [length for length in mixture if length < 500]
    assert len(small) / 4000 == pytest.approx(0.75, abs=0.03)
    assert statistics.stdev(small) == pytest.approx(5, abs=0.4)
    some = '{"value": 128, "weight": 30}, {"value": 512, "weight": 10}, {"value": 9, "weight": 0}'
    points = Counter(drawn(f'{{"points": [{some}]}}'))
    assert points.keys() == {128, 512}
    assert points[128] / 4000 == pytest.approx(0.75, abs=0.03)


def test_min_and_max_are_kept() -> None:
    bounded = Counter(drawn('{"mean": 300, "stddev": 50, "min": 280, "max": 320}'))
    assert (min(bounded), max(bounded)) == (280, 320)
    assert bounded[280] > 1000 < bounded[320]
    peaks = drawn('{"peaks": [{"mean": 10, "stddev": 9, "max": 12}, {"value": 50}], "min": 4}')
    assert (min(peaks), max(small for small in peaks if small != 50)) == (4, 12)
    assert set(drawn('{"value": 0}')) == {1}


def test_prompts_and_answers_have_the_lengths_of_their_distributions() -> None:
    made = turns(
        400,
        isl_distribution='{"points": [{"value": 5}, {"value": 9}]}',
        osl_distribution='{"points": [{"value": 2}, {"value": 3}]}',
    )
    assert {len(turn.text) for turn in made} == {5, 9}
    assert {turn.max_tokens for turn in made} == {2, 3}
    assert len({(len(turn.text), turn.max_tokens) for turn in made}) == 4  # one doesn't follow from the other


def test_a_normal_one_draws_what_the_flags_draw() -> None:
    shape = '{"mean": 40, "stddev": 9}'
    by_flags = turns(50, isl=40, isl_stddev=9.0, osl=40, osl_stddev=9.0)
    assert turns(50, isl_distribution=shape, osl_distribution=shape) == by_flags


def test_answers_of_a_file_are_drawn_where_a_row_has_none(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.touch()
    context = DatasetContext(1, 7, True, Bytes(), CAN, source=path)
    defaults = FileDefaults(CommonOptions(osl_distribution='{"points": [{"value": 4}, {"value": 6}]}'), context)
    found = [defaults.conversation(n, None, (Turn(("x",)), Turn(("y",), max_tokens=50))) for n in range(40)]
    assert {one.turns[0].max_tokens for one in found} == {4, 6}
    assert {one.turns[1].max_tokens for one in found} == {50}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "'{' is neither a number nor a distribution like"),
        ("[1]", "the distribution is [1], no number"),
        ("true", "the distribution is True, no number"),
        ("-3", "the distribution is -3; 0 to 10⁹ is allowed"),
        ("1e99", "the distribution is 1e+99; 0 to 10⁹ is allowed"),
        ("{}", "the distribution has none of the keys peaks, points, median, stddev, value, mean"),
        ('{"type": "gamma", "mean": 4}', "the distribution has the type 'gamma', which can't be drawn; fixed, normal"),
        ('{"mean": 4, "medain": 3}', "the distribution of type normal has no medain; did you mean median?"),
        ('{"mean": 4, "weight": 3}', "the distribution of type normal has no weight; it has mean, stddev, min, max"),
        ('{"type": "normal", "mean": 4, "median": 3}', "the distribution of type normal has no median; it has mean"),
        ('{"mean": 4, "stdev": 3}', "the distribution of type normal has no stdev; did you mean stddev?"),
        ('{"median": 4}', "the distribution has no mean"),
        ('{"mean": 3, "median": 4}', "a median of 4 and a mean of 3; 0 < median <= mean in a log-normal one"),
        ('{"mean": 3, "min": 5, "max": 4}', "the distribution has a min of 5 above its max of 4"),
        ('{"mean": "x"}', "mean of the distribution is 'x', no number"),
        ('{"peaks": [{"mean": 3}]}', "peaks of the distribution are a list of at least 2"),
        ('{"peaks": [{"mean": 3}, 4]}', "peaks[1] of the distribution is no mapping"),
        ('{"peaks": [{"mean": 3}, {"mean": 4, "weight": -1}]}', "weight of peaks[1] of the distribution is -1; 0 to 10⁹"),
        ('{"peaks": [{"mean": 3, "weight": 0}, {"mean": 4, "weight": 0}]}', "peaks of the distribution have no weight above 0"),
        ('{"points": [{"mean": 3}]}', "points[0] of the distribution has mean; a point has value and weight"),
    ],
)
def test_what_cannot_be_drawn_is_a_sentence(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        distribution(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_distribution_within_itself_ends() -> None:
    text = '{"mean": 3}'
    for _ in range(8):
        text = f'{{"peaks": [{text}, {{"mean": 3}}]}}'
    with pytest.raises(ValueError, match="peaks within peaks"):
        distribution(text)
