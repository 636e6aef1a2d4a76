"""The program in an answer, and the test cases of its problem."""

from __future__ import annotations

import base64
import binascii
import io
import json
import pickle
import re
import zlib
from typing import Any

from msgspec import Struct

_BLOCK = re.compile(r"^```[^\n`]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_MOST_BYTES = 256 << 20


class BadMaterialError(Exception):
    """The expected answer holds no test cases that can be read."""


class TestCase(Struct, frozen=True):
    """A test case.

    input: the standard input; for a function a JSON value on each line.  output: what the program prints; of a function JSON.
    """

    __test__ = False

    input: str
    output: str


class Material(Struct, frozen=True):
    """The test cases of a problem.  function: the one that they call; None: they use standard input and output."""

    cases: tuple[TestCase, ...]
    function: str | None


class _TextAlone(pickle.Unpickler):
    """Reads a pickled text; whatever names a class or function is refused."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is refused")


def unpacked(text: str) -> str:
    """The text in base64 of a zlib stream of a pickled text.

    Raises:
        BadMaterialError: It is something else, or larger than 256 MB.
    """
    try:
        stream = zlib.decompressobj()
        data = stream.decompress(base64.b64decode(text, validate=True), _MOST_BYTES)
        value = _TextAlone(io.BytesIO(data)).load()
    except (binascii.Error, zlib.error, pickle.UnpicklingError, EOFError, ValueError, LookupError, AttributeError) as error:
        raise BadMaterialError(f"the packed test cases: {error}") from error
    if not isinstance(value, str) or stream.unconsumed_tail:
        raise BadMaterialError("the packed test cases are no text, or too large")
    return value


def _cases(given: Any) -> list[TestCase]:
    if isinstance(given, str):
        text = given.strip()
        given = _json(text if text[:1] in ("", "[") else unpacked(text)) if text else []
    if not isinstance(given, list) or not all(isinstance(each, dict) and {"input", "output"} <= each.keys() for each in given):
        raise BadMaterialError("test cases are lists of objects with input and output")
    return [TestCase(str(each["input"]), str(each["output"])) for each in given]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadMaterialError(f"no JSON: {error}") from error


def material_of(expected: str) -> Material:
    """The test cases, public ones first.

    Raises:
        BadMaterialError: They can't be read.
    """
    row = _json(expected)
    if not isinstance(row, dict):
        raise BadMaterialError("the expected answer is no JSON object")
    metadata = row.get("metadata") or {}
    metadata = _json(metadata) if isinstance(metadata, str) else metadata
    name = metadata.get("func_name") if isinstance(metadata, dict) else None
    cases = [*_cases(row.get("public_test_cases") or []), *_cases(row.get("private_test_cases") or [])]
    if name is not None:
        for case in cases:
            _ = [_json(line) for line in case.input.split("\n") if line.strip()]
    return Material(tuple(cases), name if isinstance(name, str) else None)


def last_block(text: str) -> str | None:
    """The content of the last fenced block; None where the answer has none."""
    found = _BLOCK.findall(text if text.endswith("\n") else text + "\n")
    return found[-1] if found else None


__all__ = ["BadMaterialError", "Material", "TestCase", "last_block", "material_of", "unpacked"]
