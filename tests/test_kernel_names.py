"""The kernel selects by what plugins declare: no name of a plugin stands in its code, but as a default, in one module."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import yaml
from aiperf.sdk.categories import CATEGORIES
from requirements import ROOT
from test_repository import KERNEL

FOREIGN = "foreign.py"
"""The module that may name them: packages behind doors, and the plugins that are defaults of kernel options."""
HOMONYMS = {
    "a category of plugins": {"arrivals": "*", "datasets": "*", "telemetry": "*", "scenarios": "*"},
    "the program itself": {"aiperf": "*"},
    "a field or a section of the options": {
        "request_rate": "planning/*", "fixed_schedule": "planning/* study/preparation.py", "request_count": "planning/*",
        "sessions": "planning/phases.py", "datasets": "*", "plugins": "*", "user_centric": "planning/outputs.py",
        "records": "planning/config_sections.py", "raw": "planning/config_sections.py", "public": "planning/config_sections.py",
        "columns": "planning/config_sections.py",
    },
    "how much is exported": {"records": "sdk/*", "raw": "sdk/*"},
    "which option names a data set": {"public": "sdk/dataset.py planning/sources.py"},
    "a command of the kernel, or a word of it": {"plugins": "cli/*", "validate": "cli/plugins.py"},
    "the field of --config": {"config": "cli/commandline.py"},
    "how the list of URLs or models is gone through": {"round_robin": "sdk/plan.py", "random": "sdk/plan.py"},
    "whose clock stamps": {"kernel": "worker/*"},
    "a scheme of URLs": {"http": "planning/addresses.py sdk/fetch.py"},
    "a key of a request, a column, a summary or a draw": {
        "messages": "sdk/model.py", "inputs": "sdk/model.py", "score": "sdk/columns.py",
        "failures": "run/measured.py sdk/table.py study/reporting.py", "measurement": "sdk/table.py",
        "shuffle": "sdk/draws.py", "advice": "sdk/verdict.py",
    },
    "how quantiles are interpolated": {"linear": "sdk/definition.py"},
    "how a range is divided": {"linear": "sdk/study.py"},
    "a name in Python": {
        "paced": "registry/hooks.py", "report": "parts/*", "validate": "parts/*", "columns": "sdk/ui.py",
        "plot": "sdk/categories.py", "plugins": "registry/third_party.py sdk/table.py", "messages": "worker/asking.py",
    },
}  # fmt: skip
"""Words that merely are some plugin's name, too: by what they mean in the kernel, and the files in which they mean it."""


def plugins() -> dict[str, str]:
    """Every name of a plugin of this repository, with a category; also as ``category:name``."""
    found: dict[str, str] = {}
    for path in ROOT.glob("plugins/*/*/src/*/aiperf.yaml"):
        for row in yaml.safe_load(path.read_text())["plugins"]:
            served = row.get("capabilities", {}).get("names", ()) if row["category"] == "datasets" else ()
            for name in (row["name"], *row.get("aliases", ()), *served):
                found |= {name: row["category"], f"{row['category']}:{name}": row["category"]}
    return found


def words(path: Path) -> Iterator[tuple[int, str]]:
    """Every string of the module that is more than a docstring, with its line; of a string that is split, the parts."""
    tree = ast.parse(path.read_text())
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "split" and isinstance(node.value, ast.Constant):
            yield from ((node.lineno, word) for word in str(node.value.value).split())
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            yield node.lineno, node.value


def meant(word: str, inside: Path) -> str | None:
    """What the word means in this module, if it doesn't mean the plugin."""
    for meaning, files in HOMONYMS.items():
        if word in files and any(inside.match(pattern) for pattern in files[word].split()):
            return meaning
    return None


def test_the_kernel_selects_by_no_plugins_name() -> None:
    names, found = plugins(), []
    assert len(names) > 400
    modules = [path for path in KERNEL.rglob("*.py") if path.name != FOREIGN]
    assert len(modules) > 150
    for path in sorted(modules):
        inside = path.relative_to(KERNEL)
        for line, word in words(path):
            if word in names and meant(word, inside) is None:
                found.append(f"{inside}:{line}: {word} is one of the {names[word]}")
    assert found == []


def test_the_kernels_tests_need_no_plugin() -> None:
    """Their fakes are their own: no module of a package under plugins/ is imported, or named for an import."""
    modules = {path.parent.name for path in ROOT.glob("plugins/*/*/src/*/aiperf.yaml")}
    assert len(modules) > 50
    named = {
        f"{path.name}: {word}"
        for path in ROOT.glob("core/tests/*.py")
        for word in re.findall(r"aiperf_\w+", path.read_text())
        if word in modules
    }
    assert named == set()


def test_the_words_that_mean_something_else_are_still_there() -> None:
    texts = {path.relative_to(KERNEL): {word for _, word in words(path)} for path in KERNEL.rglob("*.py")}
    unused = [
        f"{word}: {pattern}"
        for files in HOMONYMS.values()
        for word, patterns in files.items()
        for pattern in patterns.split()
        if not any(word in found and inside.match(pattern) for inside, found in texts.items())
    ]
    assert unused == []


def test_the_kernels_names_are_those_of_plugins() -> None:
    """A name in the module of names that no plugin has, or that no module asks for, would be a leftover."""
    tree = ast.parse((KERNEL / FOREIGN).read_text())
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    values = {
        node.value for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings
    }  # fmt: skip
    assert {word for word in values if not word.startswith("aiperf")} <= set(plugins()) | {"none", *CATEGORIES}
    constants = {target.id for node in tree.body if isinstance(node, ast.Assign) for target in ast.walk(node)
                 if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store)}  # fmt: skip
    used = "".join(path.read_text() for path in KERNEL.rglob("*.py") if path.name != FOREIGN)
    assert {name for name in constants if name not in used} == set()
