"""Rules for every file and every package of the repository."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import contents
import pytest
import yaml
from aiperf.sdk.categories import CATEGORIES, singular

ROOT = Path(__file__).resolve().parent.parent
KERNEL = ROOT / "core" / "src" / "aiperf"
PLUGINS = sorted(path.parent for path in ROOT.glob("plugins/*/*/pyproject.toml"))
SUITE = ROOT / "libraries" / "testing"
"""The conformance suite puts the kernel's own code to work, as a run would."""
LIBRARIES = sorted(path.parent for path in ROOT.glob("libraries/*/pyproject.toml"))

# Pieced together, so that this file doesn't name them either.
FORBIDDEN = (
    "pypi" + ".org", "python" + "hosted", "npmjs" + ".org", "registry" + ".npm", "/ro" + "ot/", "/wo" + "rk/", "/ho" + "me/",
    "/tmp/" + "brief", "TO" + "DO", "FIX" + "ME", "XX" + "X ",
)  # fmt: skip

DOORS = ("aiperf", "aiperf.results", "aiperf.testing")
"""What a plugin may import, beside the modules of ``aiperf.sdk`` and, for parts of the program, of ``aiperf.parts``."""
TOP = "(top)"
ROOMS = (
    TOP, "sdk", "registry", "processes", "rundir", "planning", "prepare", "worker", "sites", "run", "study", "cli", "parts",
)  # fmt: skip
"""The kernel's rooms, ground floor first."""
REDUCER = ROOT / "plugins" / "reducers" / "columns" / "src" / "aiperf_reducer_columns"
REDUCER_ROOMS = ("statistics", "reduce", "report")
"""Those of the largest package."""


@cache
def committed() -> tuple[Path, ...]:
    """The files of the checkout, new ones included, without ignored ones.  Listed once: no test makes another."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return tuple(path for line in listed.stdout.splitlines() if (path := ROOT / line).is_file())


def toml(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text())


def module_of(plugin: Path) -> str:
    return f"aiperf_{singular(plugin.parent.name)}_{plugin.name}"


def filled_in(path: Path) -> str:
    """The text of a file; in a template, each variable is a name."""
    return re.sub(r"\{\{ ?cookiecutter.*?\}\}", "name", path.read_text())


def skeleton() -> dict[str, Any]:
    """The project file from the template of an endpoint."""
    (path,) = ROOT.glob("templates/endpoint/*/pyproject.toml")
    return tomllib.loads(filled_in(path))


def named(requirement: str) -> str:
    """The distribution's name in a requirement or a pin."""
    return re.split(r"[ <>=!~;\[]", requirement)[0].lower().replace("_", "-")


def manifest(folder: Path, module: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((folder / "src" / module / "aiperf.yaml").read_text())
    return found


@cache
def imports(path: Path, *, typing: bool = False) -> tuple[tuple[str, str], ...]:
    """(module, name) of every import, inside functions too; name "" for ``import module``.  Read once: many tests ask.

    typing: those for type checkers, too.
    """

    def walk(node: ast.AST) -> Iterator[tuple[str, str]]:
        for child in ast.iter_child_nodes(node):
            if not typing and isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                for other in child.orelse:
                    yield from walk(other)
            elif isinstance(child, ast.Import):
                yield from ((alias.name, "") for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                yield from ((child.module or "", alias.name) for alias in child.names)
            else:
                yield from walk(child)

    return tuple(walk(ast.parse(filled_in(path))))


def named_modules(path: Path) -> Iterator[tuple[str, str]]:
    """(module, name) of every string that names a module of the kernel, or (``module:name``) a thing in one."""
    for node in ast.walk(ast.parse(path.read_text())):
        found = isinstance(node, ast.Constant) and re.fullmatch(r"(aiperf(?:\.\w+)+)(?::(\w+))?", str(node.value))
        if found and any((KERNEL / found[1].split(".")[1]).with_suffix(ending).exists() for ending in ("", ".py")):
            yield found[1], found[2] or ""


def test_no_file_names_a_registry_a_local_path_or_unfinished_work() -> None:
    found = []
    for path in committed():
        text = path.read_bytes().decode("utf-8", "ignore")
        found += [f"{path.relative_to(ROOT)}: {word}" for word in FORBIDDEN if word in text]
    assert found == []


def test_test_files_have_names_of_their_own() -> None:
    names = Counter(path.name for path in committed() if path.name.startswith("test_"))
    assert [name for name, count in names.items() if count > 1] == []


def test_every_folder_under_plugins_is_a_package() -> None:
    folders = sorted(path for path in ROOT.glob("plugins/*/*") if path.is_dir() and any(path.rglob("*.py")))
    assert folders == PLUGINS


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda path: f"{path.parent.name}/{path.name}")
class TestEveryPlugin:
    def test_has_the_skeleton(self, plugin: Path) -> None:
        source = plugin / "src" / module_of(plugin)
        wanted = [plugin / "README.md", source / "__init__.py", source / "aiperf.yaml", source / "py.typed"]
        assert [str(path) for path in wanted if not path.is_file()] == []
        assert list((plugin / "tests").glob("test_*.py"))
        assert (plugin / "README.md").read_text().strip()
        assert [path.name for path in (plugin / "src").iterdir() if path.suffix != ".egg-info"] == [source.name]

    def test_has_what_a_template_yields_and_little_else(self, plugin: Path) -> None:
        declared, yielded = toml(plugin), skeleton()
        assert set(declared) - {"dependency-groups", "tool"} == set(yielded)
        assert set(declared.get("tool", {})) == {"aiperf"}, "whether the suite needs it"
        assert set(declared["project"]) - {"optional-dependencies", "license-files"} == set(yielded["project"])
        assert declared["build-system"] == yielded["build-system"]
        top = {path.relative_to(plugin).parts[0] for path in committed() if path.is_relative_to(plugin)}
        assert top == {"README.md", "pyproject.toml", "src", "tests"}
        assert (plugin / "README.md").read_text().startswith(f"# {declared['project']['name']}\n")

    def test_names_contracts_that_are_in_it(self, plugin: Path) -> None:
        for row in manifest(plugin, module_of(plugin))["plugins"]:
            module, _, name = row.get("contract", "").partition(":")
            if module:
                path = plugin / "src" / Path(*module.split(".")).with_suffix(".py")
                assert f"\nclass {name}(" in path.read_text(), f"{row['name']} names {row['contract']}"
                tests = "".join(each.read_text() for each in (plugin / "tests").glob("test_*.py"))
                assert f"({name}):" in tests, f"the package's own tests don't keep {name}"

    def test_declares_itself_as_its_folder_says(self, plugin: Path) -> None:
        declared = toml(plugin)
        project = declared["project"]
        assert project["name"] == f"aiperf-{singular(plugin.parent.name)}-{plugin.name}".replace("_", "-")
        assert project["requires-python"] == ">=3.11"
        assert project["license"] == "Apache-2.0"
        assert "aiperf-core>=0.1,<0.2" in project["dependencies"]
        assert project["readme"] == "README.md"
        assert declared["build-system"]["build-backend"] == "uv_build"

    def test_has_a_manifest_row_for_each_entry_point_and_no_other(self, plugin: Path) -> None:
        groups = toml(plugin)["project"]["entry-points"]
        found = manifest(plugin, module_of(plugin))
        assert found["schema_version"] == 1
        assert found["api"] == ">=1,<2"
        assert found["first_party"] == toml(plugin)["project"]["name"]
        assert {group.removeprefix("aiperf.") for group in groups} <= set(CATEGORIES)
        declared = sorted((group.removeprefix("aiperf."), name) for group, names in groups.items() for name in names)
        assert sorted((row["category"], row["name"]) for row in found["plugins"]) == declared
        assert all(row["summary"].strip().endswith(".") for row in found["plugins"])
        values = [value for names in groups.values() for value in names.values()]
        assert {value.split(":")[0].split(".")[0] for value in values} == {module_of(plugin)}

    def test_imports_what_is_public_and_its_own(self, plugin: Path) -> None:
        assert undeclared(plugin, module_of(plugin)) == []


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda path: path.name)
class TestEveryLibrary:
    def test_has_the_skeleton(self, library: Path) -> None:
        source = library / "src" / f"aiperf_{library.name}"
        wanted = [source / "__init__.py", source / "py.typed"]
        assert [str(path) for path in wanted if not path.is_file()] == []
        assert list((library / "tests").glob("test_*.py"))
        top = {path.relative_to(library).parts[0] for path in committed() if path.is_relative_to(library)}
        assert top == {"README.md", "pyproject.toml", "src", "tests"} | ({"compiled.py"} if in_c(library) else set())
        assert (library / "README.md").read_text().startswith(f"# {toml(library)['project']['name']}\n")

    def test_is_no_plugin(self, library: Path) -> None:
        declared = toml(library)
        assert set(declared) - {"dependency-groups"} == {"project", "tool", "build-system"}
        assert set(declared["tool"]) == {"aiperf"} | ({"hatch"} if in_c(library) else set()), "whether the suite needs it"
        assert declared["project"]["name"] == f"aiperf-{library.name}".replace("_", "-")
        assert [group for group in declared["project"].get("entry-points", ()) if group.startswith("aiperf.")] == []
        if not in_c(library):
            assert declared["build-system"] == skeleton()["build-system"]

    def test_imports_what_is_public_and_its_own(self, library: Path) -> None:
        assert undeclared(library, f"aiperf_{library.name}") == []


def in_c(library: Path) -> bool:
    """Whether the library has a compiled part, which another build backend makes."""
    return any((library / "src").rglob("*.c"))


def undeclared(package: Path, own: str) -> list[str]:
    """Imports of private names, and of first-party packages that the package doesn't declare."""
    needs = {named(need).replace("-", "_") for need in toml(package)["project"]["dependencies"]}
    found = []
    for path in sorted((package / "src").rglob("*.py")):
        for module, name in imports(path):
            parts = [*module.split("."), name]
            foreign = parts[0].startswith("aiperf_") and parts[0] != own
            private = any(part.startswith("_") and not part.startswith("__") for part in parts)
            if (foreign and parts[0] not in needs) or (private and (parts[0] == "aiperf" or foreign)):
                found.append(f"{path.name}: {module} {name}")
    return found


def test_every_import_of_a_third_party_is_declared() -> None:
    """In an extra, where the import is optional; an import for type checkers alone needs none."""
    known = {module: {named(name) for name in names} for module, names in packages_distributions().items()}
    found = []
    for folder in (ROOT / "core", ROOT / "suite", *LIBRARIES, *PLUGINS):
        project = toml(folder)["project"]
        extras = project.get("optional-dependencies", {}).values()
        needs = [*project.get("dependencies", []), *(need for wanted in extras for need in wanted)]
        declared = {named(need) for need in needs}
        for path in sorted((folder / "src").rglob("*.py")):
            if path.name in ("contract.py", "testing.py"):
                continue  # for the conformance suite, which brings pytest
            tops = {module.partition(".")[0] for module, _ in imports(path)}
            outside = {top for top in tops if top not in sys.stdlib_module_names and not top.startswith("aiperf")}
            strange = [top for top in sorted(outside) if not known.get(top, {named(top)}) & declared]
            found += [f"{path.relative_to(ROOT)}: {top}" for top in strange]
    assert found == []


def test_the_kernel_has_the_skeleton() -> None:
    assert all((KERNEL / name).is_file() for name in ("__init__.py", "py.typed", "aiperf.yaml"))


def test_the_kernel_names_no_other_package() -> None:
    """Neither in code nor in strings, comments and data files; the doors to two libraries do, and name the suite."""
    names = {"aiperf-suite", *(toml(folder)["project"]["name"] for folder in (*LIBRARIES, *PLUGINS))}
    assert len(names) > 90
    any_name = re.compile(rf"(?<![\w-])({'|'.join(sorted({*names, *(name.replace('-', '_') for name in names)}))})(?![\w-])")
    doors = [KERNEL / name for name in ("foreign.py", "results.py", "testing.py")]
    files = [path for path in committed() if path.is_relative_to(KERNEL) and path not in doors]
    assert len(files) > 150
    assert [f"{path.relative_to(KERNEL)}: {name}" for path in files for name in any_name.findall(path.read_text())] == []


@pytest.mark.parametrize(
    "folder",
    ["templates", "tests/strangers", *(str(path.relative_to(ROOT)) for path in (*LIBRARIES, *PLUGINS) if path != SUITE)],
)
def test_packages_import_promised_names_alone(folder: str) -> None:
    sources = ROOT / folder / "src" if folder.startswith(("plugins/", "libraries/")) else ROOT / folder
    used = {name for path in sources.rglob("*.py") for name in imports(path) if name[0].partition(".")[0] == "aiperf"}
    assert [f"{module} {name}" for module, name in sorted(used) if not promised(module, name)] == []


def promised(module: str, name: str) -> bool:
    """Whether a plugin may import the name, or (name "") the module."""
    if module not in DOORS and not module.startswith(("aiperf.sdk.", "aiperf.parts.")):
        room = KERNEL / module.partition(".")[2]
        return f"{module}.{name}" in DOORS or (room.name in ("sdk", "parts") and (room / f"{name}.py").is_file())
    return not name or name in importlib.import_module(module).__all__


def test_the_kernels_manifest_agrees_with_its_entry_points() -> None:
    groups = toml(ROOT / "core")["project"]["entry-points"]
    found = yaml.safe_load((KERNEL / "aiperf.yaml").read_text())
    ours = {group.removeprefix("aiperf."): names for group, names in groups.items() if group.startswith("aiperf.")}
    declared = sorted((group, name) for group, names in ours.items() for name in names)
    assert sorted((row["category"], row["name"]) for row in found["plugins"]) == declared


def test_versions_are_pinned_by_name_and_nothing_else() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pin = re.compile(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.+!]*( ; .+)?")
    assert [line for line in lines if not pin.fullmatch(line)] == []
    pinned = {named(line) for line in lines}
    wanted: set[str] = set()
    for folder in (ROOT, *contents.folders()):
        declared = toml(folder)
        project = declared.get("project", {})
        groups = [project.get("dependencies", []), declared.get("dependency-groups", {}).get("test", [])]
        extras = list(project.get("optional-dependencies", {}).values())
        wanted |= {named(need) for needs in (*groups, *extras) for need in needs}
    assert {name for name in wanted if not name.startswith("aiperf-")} - pinned == set()


def first_party(folder: Path) -> set[str]:
    """Names of the packages of this repository that a package declares."""
    declared = toml(folder)
    groups = [declared["project"]["dependencies"], *declared["project"].get("optional-dependencies", {}).values()]
    groups.append(declared.get("dependency-groups", {}).get("test", []))
    return {name for needs in groups for need in needs if (name := named(need)).startswith("aiperf-")}


def test_the_suite_lists_every_package_and_what_it_has() -> None:
    made = contents.gathered(contents.folders())
    ours = {toml(folder)["project"]["name"] for folder in contents.folders()}
    listed = {named(need) for needs in (made["requires"], *made["extras"].values()) for need in needs}
    assert listed - {contents.NAME} == ours - {"aiperf-testing"}
    assert made["plugins"]["endpoints:chat"] == "aiperf-endpoint-chat"
    assert made["flags"]["--osl"] == "aiperf-dataset-synthetic"


def test_packages_that_others_require_are_members_of_the_workspace() -> None:
    required = set().union(*map(first_party, contents.folders()))
    sources = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["sources"]
    assert set(sources) == required


def test_a_room_of_the_kernel_imports_only_from_rooms_below_it() -> None:
    rooms = {path.parent.name for path in KERNEL.glob("*/__init__.py")}
    assert rooms == set(ROOMS[1:]), "every room of the kernel stands in this test's list"
    floors = {room: floor for floor, room in enumerate(ROOMS)}
    door = {name: module for module, names in where().items() for name in names.split()}
    found = []
    for path in sorted(KERNEL.rglob("*.py")):
        inside = path.relative_to(KERNEL)
        if inside.name in ("__main__.py", "__init__.py") and len(inside.parts) == 1:
            continue  # the two doors
        own = inside.parts[0] if len(inside.parts) > 1 else TOP
        for module, imported in (*imports(path, typing=True), *named_modules(path)):
            parts = module.split(".")
            if parts[0] != "aiperf":
                continue
            used = parts[1] if len(parts) > 1 else door.get(imported, imported).partition(".")[0]
            used = used if used in floors else TOP
            if floors[used] > floors[own]:
                found.append(f"{inside} imports {module}.{imported}: {used} stands above {own}")
    assert found == []


LEAST_S = 60
"""A limit that is there against hanging; up to a second is a look, and no limit."""
METHODS = ("end", "join", "wait", "result", "communicate", "settimeout")
CLOCKS = ("monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "time", "time_ns")


def limits(path: Path) -> Iterator[str]:
    """What in a file of tests fails on a machine that is busy, marked ``timing`` or not."""
    tree = ast.parse(filled_in(path))
    timed = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and any("timing" in ast.unparse(mark) for mark in node.decorator_list)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            given = [each.value for each in node.keywords if each.arg == "timeout"]
            if name == "wait_for" or (name in METHODS and isinstance(node.func, ast.Attribute) and len(node.args) == 1):
                given += node.args
            numbers = [each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, int | float)]
            if len(numbers) == 1 and 1 < numbers[0] < LEAST_S:
                yield f"{path.relative_to(ROOT)}:{node.lineno}: {name} waits for {numbers[0]} s"
            if name == "settings":
                words = {each.arg: ast.unparse(each.value) for each in node.keywords}
                checks = words.get("suppress_health_check", "too_slow")
                if words.get("deadline", "None") != "None" or not ("too_slow" in checks or checks == "list(HealthCheck)"):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}: hypothesis judges the time of an example"
        elif isinstance(node, ast.Assert) and node not in timed:
            for each in ast.walk(node.test):
                if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Sub) and any(
                    isinstance(part, ast.Call) and ast.unparse(part.func).rpartition(".")[2] in CLOCKS
                    for part in (each.left, each.right)
                ):  # fmt: skip
                    yield f"{path.relative_to(ROOT)}:{node.lineno}: asserts how long something took"


def test_no_test_has_a_limit_in_wall_time_but_against_hanging() -> None:
    files = [path for path in committed() if path.suffix == ".py" and {"tests", "testing"} & set(path.parts)]
    assert len(files) > 300
    assert [fault for path in files if "real" not in path.parts for fault in limits(path)] == []


def test_a_room_of_the_reducer_imports_only_from_rooms_below_it() -> None:
    assert {path.parent.name for path in REDUCER.glob("*/__init__.py")} == set(REDUCER_ROOMS)
    found = []
    for floor, room in enumerate(REDUCER_ROOMS):
        for path in sorted((REDUCER / room).rglob("*.py")):
            strings = re.findall(rf'"({REDUCER.name}[.\w]*)[:"]', path.read_text())
            modules = (*(module for module, _ in imports(path, typing=True)), *strings)
            used = {module.split(".")[1] for module in modules if module.startswith(f"{REDUCER.name}.")}
            found += [f"{path.relative_to(REDUCER)} imports {above}" for above in used & set(REDUCER_ROOMS[floor + 1 :])]
    assert found == []


def where() -> dict[str, str]:
    """The public names of each module."""
    for node in ast.parse((KERNEL / "__init__.py").read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_WHERE":
            found: dict[str, str] = ast.literal_eval(node.value)
            return found
    raise AssertionError("the kernel's door has no table of names")
