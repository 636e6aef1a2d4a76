"""What fuzzing found stays mended, and what the targets of fuzzing begin with raises nothing; no atheris is needed."""

from __future__ import annotations

import random

import pytest
import targets


@pytest.mark.parametrize("name", targets.TARGETS)
def test_neither_seeds_nor_what_was_found_raise(name: str) -> None:
    target = targets.TARGETS[name]
    inputs = [*targets.seeds(name), *(path.read_bytes() for path in targets.corpus(name))]
    assert inputs, "a target begins with something"
    for data in inputs:
        target(data)


@pytest.mark.parametrize("name", ["decode", "rows"])
def test_odd_values_in_json_raise_what_was_promised(name: str) -> None:
    seeds, draw = list(targets.seeds(name)), random.Random(1)
    for _ in range(600):
        data = draw.choice(seeds)
        for _ in range(3):
            data = targets.mutated(data, draw) or data
        targets.TARGETS[name](data)
