"""Expressions in LaTeX or plain text as trees."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

FUNCTIONS = {
    "sin": 1, "cos": 1, "tan": 1, "cot": 1, "sec": 1, "csc": 1, "arcsin": 1, "arccos": 1, "arctan": 1, "asin": 1, "acos": 1,
    "atan": 1, "sinh": 1, "cosh": 1, "tanh": 1, "ln": 1, "log": 1, "exp": 1, "sqrt": 1, "abs": 1,
}  # fmt: skip
"""Functions by name, with their number of arguments."""
_GREEK = frozenset((
    "alpha", "beta", "gamma", "delta", "epsilon", "varepsilon", "zeta", "eta", "theta", "vartheta", "iota", "kappa",
    "lambda", "mu", "nu", "xi", "rho", "sigma", "tau", "upsilon", "phi", "varphi", "chi", "psi", "omega", "Gamma", "Delta",
    "Theta", "Lambda", "Xi", "Sigma", "Phi", "Psi", "Omega", "ell",
))  # fmt: skip
_MOST_CHARACTERS = 3_000
"""Characters of an expression."""
_DEEPEST = 100
"""Levels of brackets, commands and exponents."""
_MOST_DIGITS = 600
_NAMES = "|".join(sorted(FUNCTIONS, key=len, reverse=True))
_TOKEN = re.compile(
    rf"(?P<number>\d+(?:\.\d+)?|\.\d+)|\\(?P<command>[A-Za-z]+)|(?P<function>{_NAMES})"
    r"|(?P<pi>pi)|(?P<word>[A-Za-z]{4,})|(?P<letter>[A-Za-z])|(?P<mark>\*\*|[-+*/^_()\[\]{}|!,])|(?P<space>\s+)"
)
_CLOSES = {"(": ")", "[": "]", "{": "}", "|": "|"}


class UnreadableError(Exception):
    """The text is no expression that is read here, or one that is too large."""


class Node(NamedTuple):
    """A part of an expression.

    kind: ``number`` (with *value*), ``name`` (with *text*, a variable or constant), or an operation over *parts*: ``+``, ``*``,
    ``/`` (two parts), ``inverse``, ``^``, ``-`` (of one part), ``!``, ``root`` (of the first part, with the second one's
    index), ``choose``, ``log`` (of the first part, to the base of the second), or a function's name.
    """

    kind: str
    parts: tuple[Node, ...] = ()
    text: str = ""
    value: Fraction = Fraction(0)


class _Token(NamedTuple):
    kind: str
    text: str


def _tokens(text: str) -> list[_Token]:
    if len(text) > _MOST_CHARACTERS:
        raise UnreadableError(f"more than {_MOST_CHARACTERS} characters")
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise UnreadableError(f"unknown sign {text[at]!r}")
        at = match.end()
        kind, words = match.lastgroup, match[match.lastgroup]
        if kind == "word":
            raise UnreadableError(f"a word: {words}")
        if kind == "number" and len(words) > _MOST_DIGITS:
            raise UnreadableError(f"more than {_MOST_DIGITS} digits")
        if kind != "space":
            found.append(_Token(kind, words))
    return found


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens, self._at, self._depth = tokens, 0, 0
        self._bars = 0

    def whole(self) -> Node:
        tree = self._sum()
        if self._at < len(self._tokens):
            raise UnreadableError(f"unexpected {self._tokens[self._at].text!r}")
        return tree

    def _peek(self) -> _Token:
        return self._tokens[self._at] if self._at < len(self._tokens) else _Token("end", "")

    def _next(self) -> _Token:
        token = self._peek()
        self._at += 1
        return token

    def _mark(self, *texts: str) -> bool:
        token = self._peek()
        return token.kind == "mark" and token.text in texts

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise UnreadableError(f"more than {_DEEPEST} levels")

    def _take(self, text: str) -> None:
        if not self._mark(text):
            raise UnreadableError(f"{text!r} is missing")
        self._at += 1

    def _sum(self) -> Node:
        parts = [self._product()]
        while self._mark("+", "-"):
            minus = self._next().text == "-"
            part = self._product()
            parts.append(Node("-", (part,)) if minus else part)
        return parts[0] if len(parts) == 1 else Node("+", tuple(parts))

    def _product(self) -> Node:
        # Flat, so that a long product makes no deep tree.
        parts = [self._signed()]
        while True:
            token = self._peek()
            if token in (("mark", "*"), ("command", "cdot"), ("command", "times")):
                self._at += 1
                parts.append(self._signed())
            elif token in (("mark", "/"), ("command", "div")):
                self._at += 1
                parts.append(Node("inverse", (self._signed(),)))
            elif self._begins_factor(token):
                right = self._power()
                if _mixed(parts[-1], right, token):
                    parts[-1] = Node("+", (parts[-1], right))
                else:
                    parts.append(right)
            else:
                return parts[0] if len(parts) == 1 else Node("*", tuple(parts))

    def _begins_factor(self, token: _Token) -> bool:
        if token.kind == "mark":
            return token.text in "([{" or (token.text == "|" and self._bars == 0)
        return token.kind in ("number", "letter", "function", "pi") or (
            token.kind == "command" and token.text not in ("cdot", "times", "div", "pm", "mp")
        )

    def _signed(self) -> Node:
        minus = False
        while self._mark("+", "-"):
            minus ^= self._next().text == "-"
        self._deeper()
        power = self._power()
        self._depth -= 1
        return Node("-", (power,)) if minus else power

    def _power(self) -> Node:
        base = self._postfix()
        if not self._mark("^", "**"):
            return base
        self._at += 1
        return Node("^", (base, self._signed()))

    def _postfix(self) -> Node:
        node = self._atom()
        if self._mark("!"):
            self._at += 1
            node = Node("!", (node,))
        return node

    def _atom(self) -> Node:
        self._deeper()
        atom = self._of(self._next())
        self._depth -= 1
        return atom

    def _of(self, token: _Token) -> Node:
        if token.kind == "number":
            return Node("number", value=Fraction(token.text))
        if token.kind == "pi":
            return Node("name", text="pi")
        if token.kind == "letter":
            return self._name(token.text)
        if token.kind == "function":
            return self._function(token.text)
        if token.kind == "command":
            return self._command(token.text)
        if token.kind == "mark" and token.text in _CLOSES:
            return self._group(token.text)
        raise UnreadableError(f"unexpected {token.text!r}" if token.text else "the end is missing")

    def _group(self, opening: str) -> Node:
        bars, self._bars = self._bars, opening == "|"
        inner = self._sum()
        self._bars = bars
        self._take(_CLOSES[opening])
        return Node("abs", (inner,)) if opening == "|" else inner

    def _name(self, text: str) -> Node:
        if not self._mark("_"):
            return Node("name", text=text)
        self._at += 1
        index = self._next()
        words = index.text
        if index == ("mark", "{"):
            words = ""
            while not self._mark("}"):
                if (inner := self._next()).kind == "end":
                    raise UnreadableError("'}' is missing")
                words += inner.text
            self._at += 1
        return Node("name", text=f"{text}_{words}")

    def _braced(self) -> Node:
        if self._mark("{"):
            self._at += 1
            return self._group("{")
        return self._atom()

    def _command(self, text: str) -> Node:
        if text == "frac":
            return Node("/", (self._braced(), self._braced()))
        if text == "binom":
            return Node("choose", (self._braced(), self._braced()))
        if text == "sqrt":
            index = Node("number", value=Fraction(2))
            if self._mark("["):
                self._at += 1
                index = self._group("[")
            return Node("root", (self._braced(), index))
        if text in FUNCTIONS:
            return self._function(text)
        if text == "pi":
            return Node("name", text="pi")
        if text in _GREEK:
            return self._name(f"\\{text}")
        raise UnreadableError(f"unknown command \\{text}")

    def _function(self, name: str) -> Node:
        base = power = None
        if name == "log" and self._mark("_"):
            self._at += 1
            base = self._braced()
        if self._mark("^"):
            self._at += 1
            power = self._braced()
        if self._mark("(", "{", "|"):
            argument = self._group(self._next().text)
        else:
            factors = [self._signed()]
            while self._peek().kind in ("number", "letter", "pi"):  # sin 2x
                factors.append(self._power())
            argument = factors[0] if len(factors) == 1 else Node("*", tuple(factors))
        if power == Node("-", (Node("number", value=Fraction(1)),)):
            raise UnreadableError("an inverse function")
        node = Node(name, (argument,) if base is None else (argument, base))
        return node if power is None else Node("^", (node, power))


def _mixed(left: Node, right: Node, token: _Token) -> bool:
    """Whether a whole number stands in front of a fraction, as in three and a half."""
    return (
        token == ("command", "frac") and left.kind == "number" and left.value.denominator == 1 and right.kind == "/"
        and all(part.kind == "number" for part in right.parts)
    )  # fmt: skip


def tree_of(text: str) -> Node:
    """The expression as a tree.  *text*: as :func:`aiperf_grading.normal.normalized` gives it.

    Raises:
        UnreadableError: It is none: a word, a list, an equation, unbalanced brackets; or it is too long or too deep.
    """
    return _Parser(_tokens(text)).whole()


__all__ = ["FUNCTIONS", "Node", "UnreadableError", "tree_of"]
