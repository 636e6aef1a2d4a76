"""An exporter with a flag that another third party declares otherwise."""

from __future__ import annotations

from collections.abc import Sequence

from aiperf import Artifact, Options, Summary, SummaryExporter, option


class RivalOptions(Options):
    both: int = option("--acme-both", default=0, help="The thief has it as well.", metavar="N")
    own: str = option("--rival", default="no", help="Its own.", metavar="WORD")


class Rival(SummaryExporter[RivalOptions]):
    files = {"rival.txt": "{prefix_}rival.txt"}

    def export(self, summary: Summary) -> Sequence[Artifact]:
        path = self.target.file("rival.txt")
        path.write_text(repr(self.options))
        return [Artifact("Rival", path)]


def twin(seed: int, session: int, count: int) -> int:
    return session % count
