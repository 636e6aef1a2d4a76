"""How a row of each set becomes the turns of a conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

from aiperf import DatasetContext, Media, Turn

from aiperf_dataset_public.sets import PublicSet
from aiperf_dataset_public.skip import Skip

Row = dict[str, Any]
_PROMPT_TOKENS, _ANSWER_LEAST, _PAIR_MOST = range(4, 1025), 4, 2048
"""Tokens: of a prompt, the fewest of an answer, the most of both."""
_FENCE = "```"


class Shapes:
    """Makes turns of rows.  answers_given: the run has a length for answers, so that those of the rows may be short."""

    def __init__(self, public: PublicSet, context: DatasetContext, *, answers_given: bool) -> None:
        self._public, self._answers_given = public, answers_given
        self._tokenizer = context.tokenizer
        self._make = SHAPES[public.shape]

    def turns(self, row: Row) -> tuple[Turn, ...]:
        """The turns of a row.

        Raises:
            Skip: It has none.
        """
        return tuple(self._make(self, *(row.get(column) for column in self._public.columns)))

    def text(self, value: Any) -> Iterable[Turn]:
        return [Turn(texts=(_text(value),))]

    def first(self, values: Any) -> Iterable[Turn]:
        """The first of a list of prompts."""
        return self.text(next(iter(_items(values)), None))

    def each(self, values: Any) -> Iterable[Turn]:
        """A turn for each prompt of a list; blank ones are left out."""
        turns = [Turn(texts=(value,)) for value in _items(values) if isinstance(value, str) and value.strip()]
        if not turns:
            raise Skip("no prompt")
        return turns

    def pairs(self, messages: Any) -> Iterable[Turn]:
        """Recorded chats: each prompt that an answer follows, with the answer's length."""
        turns = []
        said = [(one.get("from"), one.get("value")) for one in _items(messages) if isinstance(one, dict)]
        for (asker, prompt), (teller, answer) in pairwise(said):
            if asker == "human" and teller == "gpt":
                turns.append(self._pair(prompt, answer))
        if not turns:
            raise Skip("no prompt with an answer")
        return turns

    def _pair(self, prompt: Any, answer: Any) -> Turn:
        text = _text(prompt)
        if self._tokenizer is None:
            return Turn(texts=(text,))
        asked = self._tokenizer.count(text)
        told = self._tokenizer.count(answer) if isinstance(answer, str) else 0
        if asked not in _PROMPT_TOKENS:
            raise Skip("a prompt shorter than 4 or longer than 1024 tokens")
        if told < _ANSWER_LEAST and not self._answers_given:
            raise Skip("an answer shorter than 4 tokens")
        if asked + told > _PAIR_MOST:
            raise Skip("a prompt and its answer longer than 2048 tokens")
        return Turn(texts=(text,), max_tokens=told or None)

    def code_change(self, code: Any, request: Any) -> Iterable[Turn]:
        """A file and what is to be changed in it."""
        parts = (
            "Apply the change request below to the original file, and write the whole new file.",
            f"Original file:\n{_FENCE}python\n{_text(code)}\n{_FENCE}",
            f"Change request:\n{_text(request)}",
            'Give the new file in a section that is called "New file".',
        )
        return [Turn(texts=("\n\n".join(parts),))]

    def text_and_picture(self, text: Any, image: Any) -> Iterable[Turn]:
        return [_pictured(_text(text), image)]

    def chat_and_pictures(self, messages: Any, images: Any) -> Iterable[Turn]:
        """The first message of a user; each may stand in a list of its own."""
        flat = [one[0] if isinstance(one, list) and one else one for one in _items(messages)]
        said = (one.get("content") for one in flat if isinstance(one, dict) and one.get("role") == "user")
        return [_pictured(_text(next(said, None)), images)]

    def human_and_picture(self, messages: Any, image: Any) -> Iterable[Turn]:
        said = (one.get("value") for one in _items(messages) if isinstance(one, dict) and one.get("from") == "human")
        return [_pictured(_text(_text(next(said, None)).replace("<image>", "").strip()), image)]

    def choices_and_video(self, question: Any, choices: Any, video: Any) -> Iterable[Turn]:
        """A question with what may be chosen, and a film by its address."""
        if not isinstance(video, str) or not video:
            raise Skip("no video")
        known = choices.items() if isinstance(choices, dict) else ()
        words = [_text(question), *(f"{key}.{value}" for key, value in known if value)]
        address = video if "://" in video else f"file://{video}"
        return [Turn(texts=(" ".join(words),), media=(Media("video", address),))]

    def speech(self, audio: Any) -> Iterable[Turn]:
        from aiperf_dataset_public.sound import clip

        return [Turn(texts=("Transcribe this audio.",), media=(clip(audio),))]


def _pictured(text: str, image: Any) -> Turn:
    from aiperf_dataset_public.pictures import picture

    media = picture(image)
    if media is None:
        raise Skip("no readable picture")
    return Turn(texts=(text,), media=(media,))


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Skip("no prompt")
    return value


def _items(values: Any) -> list[Any]:
    return values if isinstance(values, list) else []


SHAPES: dict[str, Callable[..., Iterable[Turn]]] = {
    "text": Shapes.text, "first": Shapes.first, "each": Shapes.each, "pairs": Shapes.pairs, "code_change": Shapes.code_change,
    "text_and_picture": Shapes.text_and_picture, "chat_and_pictures": Shapes.chat_and_pictures,
    "human_and_picture": Shapes.human_and_picture, "choices_and_video": Shapes.choices_and_video, "speech": Shapes.speech,
}  # fmt: skip
"""The shapes by the name that a row of the manifest has, beside ``sessions`` (:class:`aiperf_dataset_public.agents.Agents`)."""
