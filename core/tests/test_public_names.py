"""The public door: one list for people and type checkers, one for lazy loading."""

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import aiperf
import aiperf.sdk
import pytest
from aiperf.doors import by_name, door
from aiperf.sdk.categories import CATEGORIES, singular


def test_what_is_promised_is_what_can_be_loaded() -> None:
    assert set(aiperf.__all__) == {"__version__", *by_name(aiperf._WHERE)}


def test_every_public_name_loads_from_its_module() -> None:
    for name, module in by_name(aiperf._WHERE).items():
        assert getattr(aiperf, name) is getattr(__import__(f"aiperf.{module}", fromlist=[name]), name)


MODULES = sorted(f"aiperf.sdk.{path.stem}" for path in Path(aiperf.sdk.__path__[0]).glob("[!_]*.py"))


def test_every_category_has_its_module_in_the_sdk() -> None:
    modules = {name.rpartition(".")[2] for name in MODULES}
    assert [name for name in CATEGORIES if not {name, singular(name).replace(" ", "_")} & modules] == []


@pytest.mark.parametrize("name", [*MODULES, "aiperf.results"])
def test_a_module_of_the_sdk_promises_what_it_lists(name: str) -> None:
    module = importlib.import_module(name)
    assert inspect.getdoc(module)
    try:
        public = {listed: getattr(module, listed) for listed in module.__all__}
    except ImportError as error:
        if "which is not installed: pip install" not in str(error):
            raise
        pytest.skip(str(error))  # a name of a package; where that is installed, this test runs
    classes = [listed for listed, value in public.items() if inspect.isclass(value) or inspect.isfunction(value)]
    assert [listed for listed in classes if not inspect.getdoc(public[listed])] == []


ALONE = """
import importlib, importlib.abc, os, sys, traceback

class Nobody(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.startswith("aiperf_"):
            raise ModuleNotFoundError(f"no {name} here", name=name)

sys.meta_path.insert(0, Nobody())
for name in sys.argv[1:]:
    if os.fork() == 0:  # the first of the program that its process imports
        try:
            module = importlib.import_module(name)
            [getattr(module, each) for each in module.__all__]
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.wait()[1]:
        print(name)
"""


def test_every_name_of_the_sdk_imports_with_the_kernel_alone() -> None:
    """Each module before any other."""
    assert len(MODULES) > 40
    done = subprocess.run([sys.executable, "-c", ALONE, *MODULES], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_every_public_class_and_function_says_what_it_is() -> None:
    public = {name: getattr(aiperf, name) for name in aiperf.__all__}
    assert [name for name, found in public.items() if callable(found) and not inspect.getdoc(found)] == []


def test_a_public_name_of_a_package_that_is_not_installed_names_the_package() -> None:
    absent = door("somewhere", {}, packages={"Wire": "acme_wires"})
    with pytest.raises(ImportError, match=r"Wire is in the package acme-wires, which is not installed: pip install acme-"):
        absent("Wire")


def test_a_package_that_is_not_installed_is_named_where_the_name_is_in_a_module_of_it() -> None:
    absent = door("somewhere", {}, packages={"Wire": "acme_wires.copper.thin"})
    with pytest.raises(ImportError, match=r"pip install acme-wires$") as caught:
        absent("Wire")
    assert caught.value.name == "acme_wires"
