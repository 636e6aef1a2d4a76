"""Where the answer of an unknown API has its content: by a JMESPath, or in the usual places."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
from aiperf import Delta

_PLAIN = re.compile(r"[A-Za-z_]\w*(\[-?\d+\])*(\.[A-Za-z_]\w*(\[-?\d+\])*)*")
_TEXT_KEYS = ("text", "content", "response", "output", "result")
_USAGE = ("usage", "usageMetadata")


def is_plain(expression: str) -> bool:
    """Whether the expression has names and indexes alone."""
    return _PLAIN.fullmatch(expression) is not None


def extractor(expression: str) -> Callable[[Any], Any]:
    """A function that gives the value of a JMESPath in a JSON value, None where there is none.

    Names and indexes are followed here, in a tenth of the time; anything else is jmespath's.

    Raises:
        ValueError: It is no JMESPath.
    """
    import jmespath  # 10 ms, and not needed where there is no expression

    try:
        search = jmespath.compile(expression).search
    except jmespath.exceptions.JMESPathError as error:
        raise ValueError(f"is no JMESPath: {' '.join(str(error).split())}") from None
    if not is_plain(expression):
        return lambda value: _searched(search, value)
    steps = [int(index) if index else name for name, index in re.findall(r"(\w+)(?![\w\]])|\[(-?\d+)\]", expression)]

    def follow(value: Any) -> Any:
        for step in steps:
            if type(step) is str:
                value = value.get(step) if isinstance(value, dict) else None
            else:
                value = value[step] if isinstance(value, list) and -len(value) <= step < len(value) else None
            if value is None:
                return None
        return value

    return follow


def _searched(search: Callable[[Any], Any], value: Any) -> Any:
    """The value; None where a function of the expression does not take what it gets."""
    from jmespath.exceptions import JMESPathError

    try:
        return search(value)
    except JMESPathError:
        return None


def delta_of(value: Any, answer: Any) -> Delta:
    """The Delta of an answer, where *value* is its content."""
    text, items = content_of(value)
    if not isinstance(answer, dict):
        return Delta(text, items=items)
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    finish = choice.get("finish_reason") if isinstance(choice, dict) else None
    return Delta(text, "", "", usage_of(answer), finish if isinstance(finish, str) else None, items)


def content_of(value: Any) -> tuple[str, int]:
    """Text, and number of vectors or scores, of what an expression found."""
    if isinstance(value, str):
        return value, 0
    if isinstance(value, list):
        if value and all(isinstance(part, str) for part in value):
            return "".join(value), 0
        return "", _vectors(value)
    if isinstance(value, dict):
        found = detected(value)
        return (msgspec.json.encode(value).decode(), 0) if found is None else content_of(found)
    return "" if value is None else msgspec.json.encode(value).decode(), 0


def _vectors(values: list[Any]) -> int:
    """A list of numbers is one vector; of lists or objects, each is one."""
    return 1 if values and isinstance(values[0], int | float) else len(values)


def detected(answer: Any) -> Any:
    """The content in one of the usual places: a text, texts, or a list of vectors, rankings or numbers; None without any."""
    if isinstance(answer, list):
        return answer
    data = answer.get("data")
    if isinstance(data, list) and data and isinstance(data[0], dict) and data[0].get("object") == "embedding":
        return [item.get("embedding") for item in data if isinstance(item, dict) and "embedding" in item]
    for key in ("embeddings", "embedding"):
        if isinstance(answer.get(key), list):
            return answer[key]
    for key in ("rankings", "results"):
        rows = answer.get(key)
        if isinstance(rows, list) and rows and isinstance(rows[0], dict):
            return rows
    for key in _TEXT_KEYS:
        text = answer.get(key)
        if isinstance(text, str) or (isinstance(text, list) and text and all(isinstance(part, str) for part in text)):
            return text
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        return None
    for holder in (choice, choice.get("message"), choice.get("delta")):
        text = holder.get("text" if holder is choice else "content") if isinstance(holder, dict) else None
        if isinstance(text, str):
            return text
    return None


def usage_of(answer: dict[str, Any]) -> dict[str, Any] | None:
    """The token counts in one of the usual places, as they are."""
    for key in _USAGE:
        if isinstance(usage := answer.get(key), dict):
            return usage
    for key in ("response", "message"):
        holder = answer.get(key)
        if isinstance(holder, dict) and isinstance(usage := holder.get("usage"), dict):
            return usage
    details = answer.get("meta")
    tokens = details.get("tokens") if isinstance(details, dict) else answer.get("tokens")
    return tokens if isinstance(tokens, dict) else None
