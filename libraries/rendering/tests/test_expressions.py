"""Expressions over variables, and what they may not do."""

from __future__ import annotations

import pytest
from aiperf_rendering.expressions import BadExpression, Expressions

VALUES = {"a": 16, "b": 2.5, "word": "x", "many": [1, 2, 3], "of": {"rate": 5}}
EXPRESSIONS = Expressions(VALUES.__getitem__, VALUES)


@pytest.mark.parametrize(("text", "value"), [
    ("{{ a * 4 }}", 64), (" {{a // 5}} ", 3), ("{{ a / 2 }}", 8), ("{{ a / 5 }}", 3.2), ("{{ -b | abs }}", 2.5),
    ("{{ of['rate'] + many[1] }}", 7), ("{{ many }}", [1, 2, 3]), ("{{ 'large' if a > 10 else 'small' }}", "large"),
    ("isl={{ a }}, {{ word ~ 1 }}", "isl=16, x1"), ("{{ a }}{{ b }}", "162.5"), ("plain", "plain"),
    ("{{ b | round | int }}", 2),
    ("{{ a > 3 and not false }}", True), ("{{ many | sum }}", 6), ("{{ '{{' }} a", "{{ a"), ("{{ 0.1 + 0.2 }}", 0.1 + 0.2),
    ("", ""),
])  # fmt: skip
def test_a_single_expression_keeps_its_type(text: str, value: object) -> None:
    assert EXPRESSIONS.value(text) == value and type(EXPRESSIONS.value(text)) is type(value)


@pytest.mark.parametrize(("text", "why"), [
    ("{% for x in many %}{{ x }}{% endfor %}", "a loop can't be computed"), ("{{ word.upper }}", "an attribute can't be read"),
    ("{{ of.rate }}", "a key is read with name"), ("{{ word.__class__ }}", "an attribute can't be read"),
    ("{{ word.upper() }}", "nothing can be called"), ("{% set x = 1 %}", "a statement can't be computed"),
    ("{{ range(9) }}", "nothing can be called"), ("{{ many | map('upper') }}", "there is no filter map"),
    ("{{ word | attr('x') }}", "there is no filter attr"), ("{{ c }}", "no variable is called c"),
    ("{{ wrod }}", "did you mean word?"), ("{{ a + }}", "it can't be read"), ("{{ a", "it can't be read"),
    ("{{ a + word }}", "it can't be computed"), ("{{ 1 / 0 }}", "it can't be computed"), ("{{ of['speed'] }}", "no such key"),
    ("{{ 9 ** (9 ** 9) }}", "it costs too much"), ("{{ word * 10 ** 10 }}", "it costs too much"),
    ("{{ " + "(" * 4000 + "1" + ")" * 4000 + " }}", "nested too deeply"), ("{{ a }}" * 2000, "more than 10,000 characters"),
    ("{% include 'x' %}", "a statement can't be computed"), ("{{ a is defined }}", "which can't be computed"),
])  # fmt: skip
def test_what_an_expression_may_not_do_is_a_sentence(text: str, why: str) -> None:
    with pytest.raises(BadExpression) as caught:
        EXPRESSIONS.value(text)
    assert why in str(caught.value)

