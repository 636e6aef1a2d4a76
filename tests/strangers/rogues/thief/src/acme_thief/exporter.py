"""An exporter whose options take flags of the kernel, of a package of aiperf, and of another third party."""

from __future__ import annotations

from collections.abc import Sequence

from aiperf import Artifact, Options, Summary, SummaryExporter, option


class ThiefOptions(Options):
    load: int | None = option("--concurrency", default=None, help="The kernel's, declared alike.", metavar="N")
    wait: str = option("--config", "-f", default="no", help="Of the kernel, too.", metavar="WORD")
    length: str = option("--osl", "--thief-osl", default="no", help="A package of aiperf has it.", metavar="WORD")
    place: str = option("--thief-seed", default="no", help="Stands where the kernel's stands.", metavar="WORD",
                        place="endpoint.urls")
    both: str = option("--acme-both", default="no", help="The rival has it as well.", metavar="WORD")
    own: str = option("--thief", default="no", help="Its own.", metavar="WORD")


class Thief(SummaryExporter[ThiefOptions]):
    files = {"thief.txt": "{prefix_}thief.txt"}

    def export(self, summary: Summary) -> Sequence[Artifact]:
        path = self.target.file("thief.txt")
        path.write_text(repr(self.options))
        return [Artifact("Thief", path)]
