"""The {{ cookiecutter.name }} engine: shards at a lower priority."""

from __future__ import annotations

from aiperf import LocalProcess, Shard, ShardEngine, ShardStart

_NICE = ("nice", "-n", "5")


class {{ cookiecutter.__class }}(ShardEngine):
    """Puts words in front of the command that starts a shard; it could as well enter a container or another user's name.

    Shards whose standard input stays open and that inherit the descriptors count their limits together: *shares_memory*,
    which the manifest says, too.
    """

    shares_memory = True

    def start(self, start: ShardStart) -> Shard:
        return LocalProcess((*_NICE, *start.command), start.log, start.descriptors)
