"""A YAML file as entries that know their line, with ``${VARIABLE}`` filled in from the environment.

Expressions stand in them as written.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from aiperf import ConfigError
from msgspec import Struct

_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)(?::([^}]*))?\}")
_MERGE = "tag:yaml.org,2002:merge"
_MOST_REPEATED = 10_000
"""Values that aliases repeat: a few lines of YAML can stand for more than memory holds."""
_COLLECTIONS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


class Entry(Struct, frozen=True):
    """A value in the file.

    path: its keys, between dots.  value: a scalar, a list of entries, or entries by key as written.  variables: the names of
    those that its expression was computed from.
    """

    path: str
    line: int
    value: Any
    variables: frozenset[str] = frozenset()

    @property
    def all_variables(self) -> frozenset[str]:
        """The variables of the entry, and of all below it."""
        below = self.value.values() if isinstance(self.value, dict) else self.value if isinstance(self.value, list) else ()
        return self.variables.union(*(entry.all_variables for entry in below))

    @property
    def plain(self) -> Any:
        if isinstance(self.value, dict):
            return {key: entry.plain for key, entry in self.value.items()}
        return [entry.plain for entry in self.value] if isinstance(self.value, list) else self.value


def flow(entry: Entry) -> str:
    """The entry as YAML text in which each value has the line that it has in the file, or a later one."""
    pieces: list[str] = []
    line = 1

    def write(each: Entry, key: str = "") -> None:
        nonlocal line
        if each.line > line:
            pieces.append("\n" * (each.line - line))
            line = each.line
        pieces.append(f"{json.dumps(key, ensure_ascii=False)}: " if key else "")
        if not isinstance(each.value, dict | list):
            pieces.append(json.dumps(each.value, ensure_ascii=False, default=str))
            return
        named = each.value.items() if isinstance(each.value, dict) else (("", below) for below in each.value)
        opened, closed = "{}" if isinstance(each.value, dict) else "[]"
        pieces.append(opened)
        for name, below in named:
            write(below, str(name))
            pieces.append(",")
        pieces.append(closed)

    write(entry)
    return "".join(pieces)


def read(path: Path) -> Entry:
    """The root of a YAML file.

    Raises:
        ConfigError: The file can't be read, is empty, or isn't plain YAML; names the line.
    """
    import yaml

    try:
        loader = yaml.SafeLoader(path.read_text())
        node = loader.get_single_node()
        if node is None:
            raise ConfigError(f"{path} is empty", "it begins with benchmark:, and what the run is made of below")
        return _Reader(loader, path.name).entry(node, "", ())
    except (OSError, UnicodeDecodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"--config {path} can't be read: {cause}", "give the path of a YAML file") from error
    except RecursionError as error:
        raise ConfigError(f"{path} is nested too deeply to be read", "a few levels below benchmark: are enough") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark is not None else str(path)
        hint = "indent with spaces" if "\\t" in str(error) else "docs/config.md shows what a file looks like"
        raise ConfigError(f"{where} is not YAML: {getattr(error, 'problem', None) or error}", hint) from error


class _Reader:
    """Entries of the nodes of a file.  Aliases may repeat a part of it, and no more than so many values in all."""

    def __init__(self, loader: Any, name: str) -> None:
        self._loader, self._name = loader, name
        self._known: set[int] = set()
        self._repeated = 0

    def entry(self, node: Any, path: str, above: tuple[Any, ...]) -> Entry:
        """The entry of a node and of all nodes below it.  above: the nodes that contain it."""
        import yaml

        line, inside = node.start_mark.line + 1, (*above, node)
        if any(node is parent for parent in above):
            raise ConfigError(f"{path} ({self._name}:{line}) contains itself")
        self._count(1 if id(node) in self._known else 0)
        self._known.add(id(node))
        if not isinstance(node, yaml.ScalarNode) and node.tag not in _COLLECTIONS:
            raise ConfigError(f"{self._name}:{line}: the tag {node.tag} means nothing here", "write a plain mapping or list")
        if isinstance(node, yaml.SequenceNode):
            return Entry(path, line, [self.entry(item, f"{path}[{n}]", inside) for n, item in enumerate(node.value)])
        if not isinstance(node, yaml.MappingNode):
            value = self._loader.construct_object(node)
            text = not isinstance(value, bool | int | float | None)
            return Entry(path, line, self._substituted(node, f"{path} ({self._name}:{line})") if text else value)
        start = f"{path}." if path else ""
        return Entry(path, line, {key: self.entry(value, f"{start}{key}", inside) for key, value in self._below(node).items()})

    def _substituted(self, node: Any, where: str) -> Any:
        """The text with variables of the environment; of ``variables`` the value that an unquoted one then has."""
        text = _substituted(str(node.value), where)
        if text == node.value or node.style is not None or not where.startswith("variables."):
            return text
        import yaml

        tag = self._loader.resolve(yaml.ScalarNode, text, (True, False))
        value = self._loader.construct_object(yaml.ScalarNode(tag, text))
        return value if isinstance(value, bool | int | float) else text

    def _below(self, node: Any) -> dict[str, Any]:
        """The nodes of a mapping by key."""
        seen: set[str] = set()
        for key, _ in node.value:
            if str(key.value) in seen:
                where = f"{self._name}:{key.start_mark.line + 1}"
                raise ConfigError(f"{where}: {key.value} stands here twice", "keep one of them")
            seen.add(str(key.value))
        self._count(_merged(node, {}) - len(node.value))
        self._loader.flatten_mapping(node)  # keys merged with << come first; the mapping's own keys replace them
        return {str(key.value): value for key, value in node.value}

    def _count(self, repeated: int) -> None:
        self._repeated += repeated
        if self._repeated > _MOST_REPEATED:
            raise ConfigError(
                f"{self._name}: its aliases (*name) repeat more than {_MOST_REPEATED:,} values",
                "write out what is meant, or put a data set into a file of its own",
            )


def _merged(node: Any, known: dict[int, int]) -> int:
    """How many keys a mapping has once those merged with ``<<`` are copied into it, twice the same counted twice."""
    if id(node) not in known:
        known[id(node)] = _MOST_REPEATED + 1  # of one that contains itself
        targets = [one for key, value in node.value if key.tag == _MERGE for one in _targets(value)]
        known[id(node)] = len(node.value) + sum(_merged(one, known) for one in targets)
    return known[id(node)]


def _targets(node: Any) -> list[Any]:
    """The mappings that ``<<`` names: one, or a list of them.  PyYAML refuses anything else."""
    import yaml

    nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
    return [one for one in nodes if isinstance(one, yaml.MappingNode)]


def _substituted(text: str, where: str) -> str:
    """The text with ``${VARIABLE}`` and ``${VARIABLE:default}`` from the environment."""
    def value(match: re.Match[str]) -> str:
        text = os.environ.get(match[1], match[2])
        if text is None:
            raise ConfigError(f"{where}: the variable {match[1]} is not set", f"set it, or write ${{{match[1]}:default}}")
        return text

    return _VARIABLE.sub(value, text)

