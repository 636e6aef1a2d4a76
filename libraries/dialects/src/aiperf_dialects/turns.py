"""Checks of turns, for endpoints that take one prompt, or read all answers of a run alike."""

from __future__ import annotations

from aiperf import BadDataset, Turn


def one_text(dialect: str, turn: Turn) -> str:
    """The only text of a turn.

    Raises:
        BadDataset: It has none, or several.
    """
    if len(turn.texts) != 1 and turn.payload is None:
        count = f"{len(turn.texts)} texts" if turn.texts else "none"
        raise BadDataset(f"{dialect} needs one text, the prompt, and the turn has {count}", "give each row one text")
    return turn.texts[0] if turn.texts else ""


def check_shared(turn: Turn, *names: str) -> None:
    """Check that a turn sets none of the fields *names*, by which all answers of a run are read.

    Raises:
        BadDataset: It sets one.
    """
    for name in names:
        if name in turn.extra:
            hint = f"give --extra-inputs {name}:…"
            raise BadDataset(f"a row has a {name} of its own, and all answers are read alike", hint)


__all__ = ["check_shared", "one_text"]
