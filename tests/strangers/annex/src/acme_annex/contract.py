"""The contract of engines of sites, with two rooms that every machine has.  For ``aiperf plugins validate``."""

from pathlib import Path

from aiperf.testing import SiteEngineContract

from acme_annex import Annex, AnnexOptions


class AnnexContract(SiteEngineContract):
    engine, options = Annex, AnnexOptions(rooms=(Path("/tmp"), Path("/usr")))
