"""Values of expressions, and whether two expressions are the same.

Numbers are exact while they are short; else, and in roots and functions, they are complex floats.  Two expressions with
variables are the same if they agree at fixed points, some of them negative (an identity test after Schwartz and Zippel).
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TypeAlias

from aiperf_grading.parsing import Node, UnreadableError, tree_of

Value: TypeAlias = Fraction | complex

TOLERANCE = 1e-4
"""How far two numbers may be apart."""
_IDENTITY = 1e-9
"""How far the values of two expressions with variables may be apart, as a share of the value."""
_MOST_BITS = 8_192
_MOST_FACTORIAL = 300
"""The largest number of which a factorial or binomial coefficient is computed."""
_POINTS = (
    (0.7390851, 1.3247179, 0.5671432, 1.8392867, 0.9159655, 1.2020569, 0.2614972, 1.4513692),
    (-0.6180339, 1.7632228, -1.3063778, 0.6434105, -0.4812118, 1.0986122, -1.9021605, 0.3532363),
    (2.6651441, -2.2955871, 0.8346268, -1.4670780, 3.2758229, -0.7642236, 1.1319882, -2.5849817),
    (1.9275619, 3.3598856, -2.8077702, 2.5029078, -3.6256099, -1.6066951, 0.4891893, 2.2394331),
)
"""Values of the variables, in the order of their names."""
_FUNCTIONS: dict[str, Callable[[complex], complex]] = {
    "sin": cmath.sin, "cos": cmath.cos, "tan": cmath.tan, "arcsin": cmath.asin, "arccos": cmath.acos, "arctan": cmath.atan,
    "asin": cmath.asin, "acos": cmath.acos, "atan": cmath.atan, "sinh": cmath.sinh, "cosh": cmath.cosh, "tanh": cmath.tanh,
    "ln": cmath.log, "log": cmath.log, "exp": cmath.exp, "sqrt": cmath.sqrt, "cot": lambda x: 1 / cmath.tan(x),
    "sec": lambda x: 1 / cmath.cos(x), "csc": lambda x: 1 / cmath.sin(x),
}  # fmt: skip
_CONSTANTS: dict[str, complex] = {"pi": complex(math.pi), "e": complex(math.e), "i": 1j}


def variables(tree: Node) -> frozenset[str]:
    """The names in the expression that are no constants."""
    if tree.kind == "name":
        return frozenset() if tree.text in _CONSTANTS else frozenset((tree.text,))
    return frozenset().union(*(variables(part) for part in tree.parts))


def _bits(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def _short(value: Value) -> Value:
    """The value, as a float where it has too many bits."""
    if isinstance(value, Fraction):
        return complex(float(value)) if _bits(value) > _MOST_BITS else value
    if not (math.isfinite(value.real) and math.isfinite(value.imag)):
        raise UnreadableError("no finite value")
    return value


def _power(base: Value, exponent: Value) -> Value:
    if isinstance(base, Fraction) and isinstance(exponent, Fraction) and exponent.denominator == 1:
        times = abs(exponent.numerator)
        if _bits(base) * times <= _MOST_BITS:
            return base**exponent.numerator
    if base == 0 and complex(exponent).real > 0:
        return Fraction(0)
    return complex(base) ** complex(exponent)


def _operate(kind: str, values: list[Value]) -> Value:
    match kind:
        case "+":
            return sum(values[1:], values[0])
        case "-":
            return -values[0]
        case "*":
            return _product(values)
        case "inverse":
            return 1 / values[0]
        case "/":
            return values[0] / values[1]
        case "^":
            return _power(values[0], values[1])
        case "root":
            return complex(values[0]) ** (1 / complex(values[1]))
        case "abs":
            return abs(values[0]) if isinstance(values[0], Fraction) else complex(abs(values[0]))
        case "!":
            return _factorial(values[0])
        case "choose":
            return Fraction(math.comb(_whole(values[0]), _whole(values[1])))
    if kind == "log" and len(values) == 2:
        return cmath.log(complex(values[0])) / cmath.log(complex(values[1]))
    return _FUNCTIONS[kind](complex(values[0]))


def _product(values: list[Value]) -> Value:
    made = values[0]
    for value in values[1:]:
        made = _short(made * value)
    return made


def _whole(value: Value) -> int:
    if isinstance(value, Fraction) and value.denominator == 1 and 0 <= value <= _MOST_FACTORIAL:
        return value.numerator
    raise UnreadableError("no small whole number")


def _factorial(value: Value) -> Fraction:
    return Fraction(math.factorial(_whole(value)))


def value_of(tree: Node, names: Mapping[str, complex]) -> Value:
    """The value where the variables have these values.

    Raises:
        UnreadableError: It has none, or is too large for a float.
    """
    if tree.kind == "number":
        return tree.value
    if tree.kind == "name":
        return names[tree.text] if tree.text in names else _CONSTANTS[tree.text]
    try:
        return _short(_operate(tree.kind, [value_of(part, names) for part in tree.parts]))
    except (ArithmeticError, ValueError) as error:
        raise UnreadableError(f"no value: {error}") from None


def _near(one: Value, other: Value, *, absolute: float) -> bool:
    if isinstance(one, Fraction) and isinstance(other, Fraction):
        return one == other or abs(one - other) <= absolute
    difference = abs(complex(one) - complex(other))
    return difference <= max(absolute, 1e-12 * abs(complex(one)))


def same_values(one: str, other: str, tolerance: float = TOLERANCE) -> bool | None:
    """Whether two normalized expressions are the same; None where one can't be read or has no value.

    tolerance: how far they may be apart, without variables.
    """
    try:
        first, second = tree_of(one), tree_of(other)
        names = sorted(variables(first) | variables(second))
        if not names:
            return _near(value_of(first, {}), value_of(second, {}), absolute=tolerance)
        if len(names) > len(_POINTS[0]):
            return None
    except (UnreadableError, OverflowError):
        return None
    agreed = 0
    for point in _POINTS:
        given = {name: complex(value) for name, value in zip(names, point, strict=False)}
        try:
            left, right = value_of(first, given), value_of(second, given)
            near = _near(left, right, absolute=_IDENTITY * max(1.0, abs(complex(left))))
        except (UnreadableError, OverflowError):
            continue
        if not near:
            return False
        agreed += 1
    return True if agreed >= 2 else None


__all__ = ["TOLERANCE", "Value", "same_values", "value_of", "variables"]
