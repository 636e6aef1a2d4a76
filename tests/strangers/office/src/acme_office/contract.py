"""What `aiperf plugins validate` runs."""

from __future__ import annotations

from aiperf.testing import BatchExporterContract

from acme_office.archive import Archive


class ArchiveContract(BatchExporterContract):
    exporter = Archive
