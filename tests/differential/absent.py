"""Empty modules in place of packages that another one imports and doesn't need for what is asked of it here.

lighteval imports torch and ten others before its metrics of answers, which use none of them: several GB.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

NAMES = frozenset((
    "accelerate", "aenum", "git", "inspect_ai", "langcodes", "nltk", "openai", "pycountry", "pytablewriter", "rouge_score",
    "sacrebleu", "sklearn", "termcolor", "torch",
))  # fmt: skip


class _Absent(ModuleType):
    """A module that has every name, as a class that does nothing."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": lambda self, *given, **named: None, "__call__": lambda self, *given, **named: None})


class _Finder(MetaPathFinder, Loader):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] in NAMES else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Absent(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def install() -> None:
    """Let imports of these packages, as far as they are not installed, give empty modules."""
    sys.meta_path.append(_Finder())
