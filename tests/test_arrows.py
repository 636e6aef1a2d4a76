"""Who imports whom, in the kernel, the libraries and the packages under plugins: no circle, and no arrow up.

An import counts inside a function, too, and so does a name that is looked up: a string with a module's name, with or without a
name in it, in code or in a data file, and a name of the kernel's door, which stands for the module that has it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Set
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from requirements import ROOT
from test_repository import KERNEL, LIBRARIES, PLUGINS, committed, imports, named, toml, where

DOORS = {"aiperf.foreign", "aiperf.results", "aiperf.testing"}
"""What of the kernel names two libraries: nothing of it uses them."""
REDUCER = "aiperf_reducer_columns"
ON_THE_REDUCER = {"aiperf_results", "aiperf_testing"}
"""Libraries that read what the reducer has written, or try plugins with it: no other stands on a package under plugins."""
_LOOKED_UP = re.compile(r"(aiperf(?:_\w+)?(?:\.\w+)*)(?::(\w+))?")
_IN_TEXT = re.compile(r"(?<![\w.:/-])(aiperf(?:_\w+)?(?:\.\w+)*):([A-Za-z_]\w*)")


def packages() -> dict[str, Path]:
    """The folder of each package, by the name of its module."""
    folders = [path for library in (*LIBRARIES, *PLUGINS) for path in (library / "src").iterdir()]
    return {"aiperf": KERNEL} | {path.name: path for path in folders if (path / "__init__.py").is_file()}


def modules(folders: Mapping[str, Path]) -> dict[str, Path]:
    found = {}
    for package, folder in folders.items():
        for path in folder.rglob("*.py"):
            inside = path.relative_to(folder).with_suffix("").parts
            found[".".join((package, *inside)).removesuffix(".__init__")] = path
    return found


@cache
def looked_up(path: Path) -> tuple[tuple[str, str], ...]:
    """(module, name) of every string of the code that is nothing but the name of a module, or of a thing in one."""
    values = (node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant))
    texts = (value for value in values if isinstance(value, str))
    return tuple((found[1], found[2] or "") for text in texts if (found := _LOOKED_UP.fullmatch(text)))


def arrows(known: Mapping[str, Path], *, typing: bool) -> dict[str, set[str]]:
    """The modules that each module imports or looks up.  *typing*: for type checkers, too."""
    door = {name: f"aiperf.{module}" for module, names in where().items() for name in names.split()}
    found: dict[str, set[str]] = {}
    for module, path in known.items():
        given = () if module in DOORS else looked_up(path)
        targets = {
            f"{used}.{name}" if f"{used}.{name}" in known else door.get(name, used) if used == "aiperf" else used
            for used, name in (*imports(path, typing=typing), *given)
        }
        found[module] = (targets & set(known)) - {module}
    found["aiperf"] = set()  # the door itself: who asks it for a name has an arrow to where that is
    return found


def named_in_data() -> dict[str, list[tuple[Path, str]]]:
    """The other packages that a package's data files (manifests) name modules of, each with the file."""
    folders = packages()
    found: dict[str, list[tuple[Path, str]]] = {}
    files = [path for path in committed() if path.suffix in (".yaml", ".json", ".toml", ".txt")]
    for package, folder in folders.items():
        inside = [path for path in files if path.is_relative_to(folder)]
        texts = [(path, {module.partition(".")[0] for module, _ in _IN_TEXT.findall(path.read_text())}) for path in inside]
        found[package] = [(path, each) for path, used in texts for each in used & set(folders) - {package}]
    return found


def required(package: str) -> set[str]:
    """The packages of this repository that the package requires, and what those do."""
    folders = packages()
    needs = {named(need).replace("-", "_") for need in toml(folders[package].parent.parent)["project"]["dependencies"]}
    ours = needs & set(folders)
    return ours.union(*map(required, ours))


def circle(graph: Mapping[str, Set[str]]) -> list[str]:
    """Nodes that come back to the first; empty where there is no circle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def by_package(graph: Mapping[str, Set[str]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for module, used in graph.items():
        package = module.partition(".")[0]
        found.setdefault(package, set()).update({each.partition(".")[0] for each in used} - {package})
    return found


@pytest.fixture(scope="module")
def known() -> dict[str, Path]:
    return modules(packages())


def test_no_module_comes_back_to_itself(known: dict[str, Path]) -> None:
    assert len(known) > 500
    assert circle(arrows(known, typing=False)) == []


def test_no_package_comes_back_to_itself(known: dict[str, Path]) -> None:
    """Not even for type checkers, who get the kernel's two doors to libraries."""
    graph = arrows({name: path for name, path in known.items() if name not in DOORS}, typing=True)
    used = by_package(graph)
    for package, others in named_in_data().items():
        used[package] |= {each for _, each in others}
    assert circle(used) == []


def test_the_kernel_imports_no_other_package(known: dict[str, Path]) -> None:
    graph = arrows({name: path for name, path in known.items() if name not in DOORS}, typing=True)
    assert by_package(graph)["aiperf"] == set()


def test_a_library_stands_below_the_plugins(known: dict[str, Path]) -> None:
    graph = by_package(arrows(known, typing=True))
    plugins = {name for name, folder in packages().items() if folder.is_relative_to(ROOT / "plugins")}
    up = {library: used for name in LIBRARIES if (used := graph[library := f"aiperf_{name.name}"] & plugins)}
    assert up == {library: {REDUCER} for library in ON_THE_REDUCER} | {"aiperf_benchmarks": {"aiperf_dataset_public"}}


def test_a_data_file_names_modules_of_its_own_package_or_of_one_it_requires() -> None:
    found = [
        f"{path.name} of {package} names {each}"
        for package, used in named_in_data().items()
        for path, each in used
        if each not in required(package)
    ]
    assert found == []


def test_arrows_follow_functions_strings_and_the_door(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("def late():\n    from aiperf import Endpoint\n    return load('aiperf_two.inner:Name')\n")
    (tmp_path / "inner.py").write_text("if TYPE_CHECKING:\n    import aiperf_one\n")
    endpoint = KERNEL / "sdk" / "endpoint.py"
    known = {"aiperf_one": tmp_path / "one.py", "aiperf_two.inner": tmp_path / "inner.py", "aiperf.sdk.endpoint": endpoint}
    found = arrows(known, typing=False)
    assert found["aiperf_one"] == {"aiperf_two.inner", "aiperf.sdk.endpoint"} and circle(found) == []
    assert set(circle(arrows(known, typing=True))) == {"aiperf_one", "aiperf_two.inner"}
