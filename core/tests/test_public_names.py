"""The public door: one list for people and type checkers, one for lazy loading."""

import inspect
from types import ModuleType

import aiperf
import aiperf.testing
import pytest


def test_what_is_promised_is_what_can_be_loaded() -> None:
    assert set(aiperf.__all__) == {"__version__", *aiperf._MODULES}


def test_every_public_name_loads_from_its_module() -> None:
    for name, module in aiperf._MODULES.items():
        assert getattr(aiperf, name) is getattr(__import__(f"aiperf.{module}", fromlist=[name]), name)


@pytest.mark.parametrize("door", [aiperf, aiperf.testing])
def test_every_public_class_and_function_says_what_it_is(door: ModuleType) -> None:
    public = {name: getattr(door, name) for name in door.__all__}
    assert [name for name, found in public.items() if callable(found) and not inspect.getdoc(found)] == []
