"""The public door: one list for people and type checkers, one for lazy loading."""

import aiperf


def test_what_is_promised_is_what_can_be_loaded() -> None:
    assert set(aiperf.__all__) == {"__version__", *aiperf._MODULES}


def test_every_public_name_loads_from_its_module() -> None:
    for name, module in aiperf._MODULES.items():
        assert getattr(aiperf, name) is getattr(__import__(f"aiperf.{module}", fromlist=[name]), name)
