"""One spelling for answers that are written differently: LaTeX, units, fractions, spaces."""

from __future__ import annotations

import re
from collections.abc import Callable

LONGEST = 10_000
"""Characters of the longest text that is normalized; a longer one is compared as it is."""

_WORDS = (
    "mm", "cm", "dm", "km", "meter", "meters", "metre", "metres", "kilometer", "kilometers", "kilometre", "kilometres",
    "centimeter", "centimeters", "centimetre", "centimetres", "inch", "inches", "ft", "feet", "foot", "yd", "yard", "yards",
    "mi", "mile", "miles", "mph", "kmh", "kph", "sec", "secs", "second", "seconds", "min", "mins", "minute", "minutes",
    "hr", "hrs", "hour", "hours", "day", "days", "week", "weeks", "month", "months", "year", "years", "kg", "mg", "gram",
    "grams", "kilogram", "kilograms", "pound", "pounds", "lb", "lbs", "oz", "ounce", "ounces", "ton", "tons", "ml", "liter",
    "liters", "litre", "litres", "gallon", "gallons", "quart", "quarts", "pint", "pints", "cup", "cups", "degree",
    "degrees", "deg", "rad", "radian", "radians", "dollar", "dollars", "cent", "cents", "euro", "euros", "unit", "units",
    "square", "squared", "sq", "cubic", "cubed", "point", "points", "percent", "people", "person", "persons", "student",
    "students", "apple", "apples", "times", "way", "ways", "hertz", "hz", "kj", "joule", "joules", "watt", "watts",
    "newton", "newtons", "volt", "volts", "per",
)  # fmt: skip
_LETTERS = "acdghlmost"
"""Units of one letter, which count behind a number and a space alone: without the space they are variables."""
_UNIT = "|".join(sorted(_WORDS, key=len, reverse=True))
_POWER = r"(?:\s*\^\s*(?:\{\s*[23]\s*\}|[23]))?"
_UNITS = re.compile(
    rf"(?<=[\d}})])(?:\s*(?:{_UNIT})(?![A-Za-z_(])|\s+[{_LETTERS}](?![A-Za-z_(])){_POWER}"
    rf"(?:\s*[/\s]\s*(?:{_UNIT}|[{_LETTERS}])(?![A-Za-z_(]){_POWER})*(?=\s*(?:$|[,}}\]]))",
    re.IGNORECASE,
)
_MONTHS = re.compile(
    r"(?<![A-Za-z\\])(?:january|february|march|april|may|june|july|august|september|october|november|december)(?![A-Za-z])",
    re.IGNORECASE,
)
_GROUPED = re.compile(r"(?<![\d,.])\d{1,3}(?:(?:,|\{,\}|\\,)\d{3})+(?![\d,])")
_MATRIX = re.compile(r"\\(begin|end)\{(?:array|[bBvV]?matrix)\}(?:\{[lcr|]*\})?")
_SPACING = re.compile(r"\\(?:!|,|;|:|quad\b|qquad\b| |~)")
_TEXT = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|operatorname)\s*\{([^{}]*)\}")
_WHOLLY_TEXT = re.compile(r"\s*\\(?:text|textbf|textrm|mathrm)\s*\{[^{}]*\}\s*")
_UNIT_TEXT = re.compile(r"(?<=[^\s,+\-*/=^_(])\s*\\(?:text|mbox|textrm|mathrm)\s*\{[^{}]*\}(?:\s*\^\s*\{?[23]\}?)?\s*$")
_ASSIGNED = re.compile(r"^\s*[A-Za-z][A-Za-z0-9]?\s*=\s*([^=]+)$")
_MEMBER = re.compile(r"^\s*[A-Za-z]\s*(?:\\in(?![A-Za-z])|∈|\\to(?![A-Za-z])|\\rightarrow(?![A-Za-z])|→)\s*")
_ROOT = re.compile(r"\\sqrt\s*(?![\[{\s])(\\[A-Za-z]+|.)")
_FRACTION_2 = re.compile(r"\\frac\s*(?![{\s])(\\[A-Za-z]+|.)\s*")
_FRACTION_1 = re.compile(r"\\frac(\{[^{}]*\})\s*(?!\{)(\\[A-Za-z]+|.)")
_BASE = re.compile(r"\\log_\s*(?!\{)(\\[A-Za-z]+|.)")
_SLASH = re.compile(r"^(-?)(\d+)/(\d+)$")
_ZEROS = re.compile(r"(?<![\d.])(\d+)\.0+(?![\d.])")
_INFINITY = re.compile(r"(?<![\\A-Za-z])(?:infinity|inf)(?![A-Za-z])", re.IGNORECASE)

_PLAIN: tuple[tuple[str, str], ...] = (
    ("−", "-"), ("–", "-"), ("×", r"\times "), ("·", r"\cdot "), ("÷", "/"), ("π", r"\pi "), ("∞", r"\infty "),
    ("√", r"\sqrt "), ("½", r"\frac{1}{2}"), ("≤", r"\le "), ("≥", r"\ge "), ("≠", r"\ne "), ("°", ""),
    ("tfrac", "frac"), ("dfrac", "frac"), ("cfrac", "frac"), (r"\neq", r"\ne"), (r"\leq", r"\le"), (r"\geq", r"\ge"),
)  # fmt: skip


def carries_percent(text: str) -> bool:
    """Whether a number in the text is a percentage."""
    return "%" in text or re.search(r"\bpercent\b", text) is not None


def ungrouped(text: str) -> str:
    """The text without separators of thousands: 1,234 and 1{,}234 become 1234."""
    return _GROUPED.sub(lambda found: re.sub(r"\D", "", found[0]), text)


def _latex(text: str) -> str:
    for old, new in _PLAIN:
        text = text.replace(old, new)
    text = _MATRIX.sub(r"\\\1{pmatrix}", text)
    text = re.sub(r"\\(?:left|right)(?![a-z])", "", text).replace(r"\{", "{").replace(r"\}", "}")
    return text.replace(r"\$", "").replace("$", "").replace(r"\(", "").replace(r"\)", "").replace(r"\[", "").replace(r"\]", "")


def _units(text: str) -> str:
    if not _WHOLLY_TEXT.fullmatch(text):
        text = _UNIT_TEXT.sub("", text)
    text = _TEXT.sub(lambda found: f" {found[1]} " if found[1][:1] == " " or found[1][-1:] == " " else found[1], text)
    text = re.sub(r"\\mbox\s*\{[^{}]*\}", "", text)
    text = re.sub(r"\^\s*(?:\{\s*)?\\(?:circ|degree)(?![A-Za-z])(?:\s*\})?|\\(?:circ|degree)(?![A-Za-z])", "", text)
    text = text.replace("\\%", "").replace("%", "")
    text = _UNITS.sub("", text)
    shorter = _MONTHS.sub("", text)
    return shorter if re.search(r"\d", shorter) else text


def _spelling(text: str) -> str:
    text = _MEMBER.sub("", text)
    text = re.sub(r"(^|[^\d.])\.(\d)", r"\g<1>0.\2", text)
    text = _INFINITY.sub(r"\\infty ", text)
    text = re.sub(r"\s*,?\s*(?<![A-Za-z\\])and(?![A-Za-z])\s*", ",", text)
    if "j" in text and "i" not in text:
        text = re.sub(r"(?<![A-Za-z\\])j(?![A-Za-z])", "i", text)
    text = _ZEROS.sub(r"\1", text)
    if assigned := _ASSIGNED.match(text):
        text = assigned[1]
    text = _BASE.sub(r"\\log_{\1}", _ROOT.sub(r"\\sqrt{\1}", text))
    # A command and the letter behind it stay apart.
    text = re.sub(r"(\\[A-Za-z]+)\s+(?=[A-Za-z])", "\\1\0", text)
    text = re.sub(r"\s+", "", text).replace("\0", " ")
    text = _FRACTION_1.sub(r"\\frac\1{\2}", _FRACTION_2.sub(r"\\frac{\1}", text))
    return _SLASH.sub(r"\1\\frac{\2}{\3}", text)


_STEPS: tuple[Callable[[str], str], ...] = (_latex, ungrouped, lambda text: _SPACING.sub(" ", text), _units, _spelling)


def normalized(text: str) -> str:
    """The text in one spelling; one longer than LONGEST as it is, without spaces around it.

    Units are left out where they are words of two letters and more behind a number, or one letter behind a number and a space.
    """
    text = text.strip()
    if len(text) > LONGEST:
        return text
    text = text.strip().rstrip(".")
    for step in _STEPS:
        text = step(" ".join(text.split()))  # no long run of spaces, over which a pattern would take quadratic time
    return text.strip().rstrip(".")


__all__ = ["LONGEST", "carries_percent", "normalized", "ungrouped"]
