"""Answers that the server knows: it looks for their questions in prompts, and is right with a given probability."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
from aiperf.sdk.errors import UsageError
from msgspec import Struct

FORMS = ("letter", "sentence", "box", "hashes", "code")
"""How an answer stands in its text; letter: it is the text."""
_FIELDS = "each line is a JSON object with question, answer and, if you like, wrong (a list) and form"
_ANCHOR = 24
"""Bytes of a question by which it is looked up, at most."""
_NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?")
_LETTERS = ("ABCD", "ABCDEFGHIJ")
_OTHER, _BROKEN = "none of that", "raise SystemExit('this is wrong')"


class KnownAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """A line of the file.  wrong: what a wrong answer says; without any, it is made up.  form: None is that of the server."""

    question: str
    answer: str | int | float
    wrong: list[str] = []
    form: str | None = None


class Told(Struct, frozen=True):
    """An answer as the truth has it.  line: of its question in the file, from 1, None where the prompt has none."""

    line: int | None
    right: bool = False
    text: str = ""


class KnownAnswers:
    """Answers by question.  share: how likely an answer is right.

    Whether one is right depends on the seed, its line, and how often its question was answered before, so not on the order in
    which different questions come.
    """

    def __init__(self, known: list[KnownAnswer], share: float, form: str, seed: int) -> None:
        self._known, self._share, self._form, self._seed = known, share, form, seed
        self._before: Counter[int] = Counter()
        questions = [one.question.strip().encode() for one in known]
        self._anchor = min((_ANCHOR, *map(len, questions)))
        self._longest = max(map(len, questions), default=0)
        self._index: dict[bytes, list[tuple[bytes, int]]] = {}
        for place, question in sorted(enumerate(questions), key=lambda each: -len(each[1])):
            self._index.setdefault(question[: self._anchor], []).append((question, place))

    def place_of(self, prompt: bytes) -> int | None:
        """The place of the question that stands last in the prompt, of one inside another the longer; None without any."""
        anchor, best, end = self._anchor, None, 0
        for at in range(len(prompt) - anchor, -1, -1):
            if best is not None and at + self._longest < end:
                break
            for question, place in self._index.get(prompt[at : at + anchor], ()):
                if at + len(question) >= end and prompt.startswith(question, at):
                    best, end = place, at + len(question)
                    break
        return best

    def told(self, place: int | None, choice: int) -> Told:
        """The next answer to the question at this place.  *choice*: its number in its request."""
        if place is None:
            return Told(None)
        known = self._known[place]
        dice = random.Random(f"answers {self._seed}:{place}:{self._before[place]}:{choice}")
        right, answer, form = dice.random() < self._share, str(known.answer), known.form or self._form
        if not right:
            answer = dice.choice(known.wrong) if known.wrong else _other(answer, form, dice)
        return Told(place + 1, right, formed(answer, form))

    def asked(self, prompts: Sequence[bytes], choices: int) -> list[Told]:
        """The answers to a request, for each prompt so many; none where nothing is known."""
        if not self._known:
            return []
        return [self.told(place, choice) for place in map(self.place_of, prompts) for choice in range(choices)]

    def noted(self, asked: list[Told]) -> list[Told] | None:
        """The request for these answers was taken: the next one for their questions draws anew.  None for none."""
        self._before.update({told.line - 1 for told in asked if told.line is not None})
        return asked or None


def formed(answer: str, form: str) -> str:
    """The text of an answer."""
    match form:
        case "sentence":
            return f"The answer is ({answer})." if len(answer) == 1 and answer.isupper() else f"The answer is {answer}."
        case "box":
            return f"So the result is \\boxed{{{answer}}}"
        case "hashes":
            return f"That makes {answer}.\n#### {answer}"
        case "code":
            return f"Here is the program:\n```python\n{answer.strip()}\n```"
    return answer


def _other(answer: str, form: str, dice: random.Random) -> str:
    """A wrong answer of the kind of *answer*."""
    if form == "code":
        return _BROKEN
    for letters in _LETTERS:
        if len(answer) == 1 and answer in letters:
            return dice.choice(letters.replace(answer, ""))
    if _NUMBER.fullmatch(answer):
        plain = answer.replace(",", "")
        more = dice.randint(1, 9)
        return str(float(plain) + more) if "." in plain else str(int(plain) + more)
    return _OTHER if answer != _OTHER else "all of that"


def read_answers(path: Path) -> list[KnownAnswer]:
    """The lines of the file.

    Raises:
        UsageError: It can't be read, or a line is none; the message names the line.
    """
    given = f"--answers {path}"
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise UsageError(f"{given} can't be read: {error.strerror or error}", _FIELDS) from error
    known: list[KnownAnswer] = []
    first: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            raise UsageError(f"{given}: line {number} is empty", _FIELDS)
        try:
            one = msgspec.json.decode(line, type=KnownAnswer)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise UsageError(f"{given}: line {number} can't be read: {error}", _FIELDS) from error
        if fault := _fault(one, first, number):
            raise UsageError(f"{given}: line {number} {fault}", _FIELDS)
        known.append(one)
    if not known:
        raise UsageError(f"{given} has no lines", _FIELDS)
    return known


def _fault(one: KnownAnswer, first: dict[str, int], number: int) -> str | None:
    """What is wrong with a line; *first* has the line of each question so far."""
    question, answer = one.question.strip(), str(one.answer)
    if not question or not answer.strip():
        return f"has an empty {'question' if not question else 'answer'}"
    if one.form is not None and one.form not in FORMS:
        return f"has the form {one.form!r}; there are {', '.join(FORMS)}"
    if any(wrong.strip() == answer.strip() or not wrong.strip() for wrong in one.wrong):
        return "has a wrong answer that is empty, or the right one"
    if (earlier := first.setdefault(question, number)) != number:
        return f"has the question of line {earlier}"
    return None


__all__ = ["FORMS", "KnownAnswer", "KnownAnswers", "Told", "formed", "read_answers"]
