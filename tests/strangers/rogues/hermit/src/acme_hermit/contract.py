"""The contract of engines of sites, with two rooms that every machine has.  For ``aiperf plugins validate``."""

from pathlib import Path

from aiperf.testing import SiteEngineContract

from acme_hermit import Hermit, HermitOptions


class HermitContract(SiteEngineContract):
    engine, options = Hermit, HermitOptions(rooms=(Path("/tmp"), Path("/usr")))


class DyingHermitContract(SiteEngineContract):
    engine, options = Hermit, HermitOptions(rooms=(Path("/tmp"), Path("/usr")), whim="die:start")
