"""The templates of the package: what each is for, and its text for a model and a server."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import resources

from aiperf import UsageError
from msgspec import Struct

CATEGORIES = (
    "Getting Started", "Load Testing", "Datasets", "Sweep & Multi-Run", "Advanced", "Multimodal", "Specialized Endpoints",
)  # fmt: skip
_HEAD = re.compile(r"# (.+) \[(.+)\]\n# uses: (.+)\n")
_MODEL = re.compile(r"^(  model: ).*$", re.MULTILINE)
_URL = re.compile(r"^(    )urls?: .*$", re.MULTILINE)
_PLAIN = re.compile(r"[A-Za-z0-9][\w./:@-]*")


class Template(Struct, frozen=True):
    """purpose: a sentence.  uses: words for what it shows."""

    name: str
    purpose: str
    category: str
    uses: str
    text: str

    def made(self, model: str | None, urls: Sequence[str]) -> str:
        """The text, with another model and other servers."""
        text = self.text
        if model is not None:
            text = _MODEL.sub(lambda match: match[1] + _scalar(model), text)
        if urls:
            line = f"url: {_scalar(urls[0])}" if len(urls) == 1 else f"urls: [{', '.join(map(_scalar, urls))}]"
            text = _URL.sub(lambda match: match[1] + line, text)
        return text


def _scalar(text: str) -> str:
    return text if _PLAIN.fullmatch(text) and not text.endswith(":") and not text.isdigit() else json.dumps(text)


def templates() -> list[Template]:
    """All of them, by category and name."""
    found = []
    for file in resources.files("aiperf_command_config").joinpath("templates").iterdir():
        if not file.name.endswith(".yaml"):
            continue
        text = file.read_text(encoding="utf-8")
        head = _HEAD.match(text)
        assert head is not None, file.name
        found.append(Template(file.name.removesuffix(".yaml"), head[1], head[2], head[3], text))
    return sorted(found, key=lambda each: (CATEGORIES.index(each.category), each.name))


def template(name: str) -> Template:
    """
    Raises:
        UsageError: There is none of that name.
    """
    every = {each.name: each for each in templates()}
    key = name.strip().lower().replace("-", "_")
    if key not in every:
        near = get_close_matches(key, every, 2, 0.6)
        hint = f"did you mean {' or '.join(near)}?" if near else "aiperf config init --list shows them"
        raise UsageError(f"--template: there is no template {name!r}", hint)
    return every[key]


def matching(search: str | None, category: str | None) -> list[Template]:
    """The templates of a category, by a part of its name, with this text in name, purpose or what they use.

    Raises:
        UsageError: There is no such category, or no template has the text.
    """
    found = templates()
    if category is not None:
        wanted = category.lower()
        found = [each for each in found if wanted in each.category.lower()]
        if not found:
            raise UsageError(f"--category: there is no category {category!r}", f"categories: {', '.join(CATEGORIES)}")
    if search is not None:
        words = search.lower().replace("-", "_").split()
        found = [each for each in found if all(word in _searched(each) for word in words)]
        if not found:
            raise UsageError(f"--search: no template has {search!r}", "aiperf config init --list shows all")
    return found


def _searched(each: Template) -> str:
    return f"{each.name} {each.purpose} {each.uses}".lower().replace("-", "_")


__all__ = ["CATEGORIES", "Template", "matching", "template", "templates"]
