"""The contract of samplers: each session has an entry, independent of other calls."""

from __future__ import annotations

from typing import ClassVar

from aiperf.sdk.sampler import Sampler

from aiperf_testing.findings import unlike
from aiperf_testing.manifests import check_row

_COUNTS = (1, 2, 7, 100)
_ROUNDS = 30
"""How often a sampler goes through all entries."""


class SamplerContract:
    """Subclass with the function::

        class TestMineKeepsTheContract(SamplerContract):
            sampler = staticmethod(mine)

    covers: every entry is used after enough sessions.
    """

    sampler: ClassVar[Sampler]
    covers: ClassVar[bool] = True

    def _entries(self, count: int, sessions: range, seed: int = 7) -> list[int]:
        return [type(self).sampler(seed, session, count) for session in sessions]

    def test_its_manifest_says_what_it_is(self) -> None:
        row = check_row("samplers", type(self).sampler)
        again = [count for count in _COUNTS if len(set(self._entries(count, range(count)))) < count]
        assert not again or row.capabilities.get("repeats"), (
            f"{again[0]} sessions use an entry of {again[0]} twice, and its manifest lacks capabilities: {{repeats: true}}"
        )
        in_order = [self._entries(count, range(3 * count)) == [*range(count)] * 3 for count in _COUNTS]
        assert all(in_order) is row.capabilities.get("in_order", False), (
            f"its entries come in order: {all(in_order)}, and its manifest must say the same: capabilities: {{in_order: true}}"
        )

    def test_every_session_gets_an_entry_that_is_there(self) -> None:
        for count in _COUNTS:
            for entry in self._entries(count, range(3 * count)) + self._entries(count, range(10**9, 10**9 + 5)):
                assert type(entry) is int and 0 <= entry < count, (
                    unlike(entry, f"a whole number from 0 to {count - 1}", "an entry is an index of the data set")
                )

    def test_every_entry_is_used(self) -> None:
        for count in _COUNTS if self.covers else ():
            assert set(self._entries(count, range(_ROUNDS * count))) == set(range(count)), (
                f"{count} sessions in each of {_ROUNDS} rounds don't use all {count} entries: go through all of them"
            )

    def test_the_same_seed_gives_the_same_order(self) -> None:
        assert self._entries(50, range(200)) == self._entries(50, range(200)), (
            "the same seed gives another order: draw from the seed and the session alone"
        )

    def test_shards_that_ask_for_their_sessions_alone_get_what_one_would(self) -> None:
        whole = self._entries(13, range(120))
        for shards in (2, 5):
            for shard in range(shards):
                assert self._entries(13, range(shard, 120, shards)) == whole[shard::shards], (
                    "a shard that asks for its sessions alone gets others: draw from the seed and the session alone"
                )
