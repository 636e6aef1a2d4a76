"""Generated source code: Python, TypeScript, Go, shell, JSON and diffs, the same on every machine."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence

_CHARACTERS = 100_000
"""Characters of the corpus, at least."""

_THINGS = (
    "account", "archive", "batch", "bucket", "buffer", "cache", "channel", "cluster", "cursor", "digest", "document",
    "endpoint", "entry", "event", "field", "frame", "graph", "header", "index", "invoice", "job", "key", "label", "ledger",
    "matrix", "message", "metric", "node", "offset", "order", "packet", "page", "payload", "pixel", "policy", "price",
    "query", "queue", "record", "region", "replica", "report", "route", "sample", "schema", "segment", "sensor", "session",
    "shard", "signal", "snapshot", "socket", "span", "stream", "table", "tenant", "ticket", "token", "tree", "user",
    "vector", "vertex", "volume", "window", "worker",
)  # fmt: skip
_ACTIONS = (
    "add", "apply", "build", "check", "close", "collect", "compare", "count", "decode", "drop", "encode", "expand", "fetch",
    "filter", "find", "flush", "group", "join", "load", "merge", "move", "open", "parse", "prune", "publish", "rank", "read",
    "rebuild", "reduce", "refresh", "release", "render", "replace", "resolve", "rotate", "scan", "send", "sort", "split",
    "store", "sum", "sync", "trim", "update", "verify", "walk", "write",
)  # fmt: skip
_KINDS = (
    "active", "ancient", "cold", "current", "dirty", "empty", "expired", "failed", "fresh", "global", "hidden", "inner",
    "known", "large", "last", "local", "lost", "new", "next", "old", "open", "outer", "partial", "pending", "primary",
    "ready", "recent", "remote", "sealed", "shared", "slow", "small", "stale", "total", "unique", "visible", "warm",
)  # fmt: skip


class _Draw:
    """Draws from ``random()`` alone, because Python keeps its sequence across versions."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def below(self, limit: int) -> int:
        return int(self._random() * limit)

    def one(self, choices: Sequence[str]) -> str:
        return choices[self.below(len(choices))]

    def thing(self) -> str:
        return self.one(_THINGS)

    def action(self) -> str:
        return self.one(_ACTIONS)

    def kind(self) -> str:
        return self.one(_KINDS)

    def name(self) -> str:
        return f"{self.kind()}_{self.thing()}"


def code() -> str:
    """About 100,000 characters, in blocks with blank lines between."""
    draw, blocks, size = _Draw(20_250_101), list[str](), 0
    while size < _CHARACTERS:
        block = _LANGUAGES[draw.below(len(_LANGUAGES))](draw)
        blocks.append(block)
        size += len(block) + 1
    return "\n".join(blocks)


def _camel(*words: str) -> str:
    return words[0] + "".join(word.capitalize() for word in words[1:])


def _python_function(draw: _Draw) -> str:
    action, thing, name, other = draw.action(), draw.thing(), draw.name(), draw.name()
    limit, kind = 2 ** (2 + draw.below(12)), draw.kind()
    bodies = (
        f"    {name} = [one for one in {thing}s if one.{kind} is not None]\n"
        f"    if len({name}) > {limit}:\n"
        f'        raise ValueError(f"{{len({name})}} {thing}s are more than {limit}")\n'
        f"    return sorted({name}, key=lambda one: one.{draw.thing()}_id)\n",
        f"    {name}: dict[str, int] = {{}}\n"
        f"    for position, {thing} in enumerate({thing}s):\n"
        f"        if {thing}.{kind}:\n"
        f"            continue\n"
        f"        {name}[{thing}.{draw.thing()}] = position % {limit}\n"
        f"    return {name}\n",
        f"    with open_{draw.thing()}(path, mode='{draw.one(('rb', 'r', 'w', 'ab'))}') as {other}:\n"
        f"        while chunk := {other}.read({limit}):\n"
        f"            {thing}s.append({draw.action()}_{draw.thing()}(chunk))\n"
        f"    log.{draw.one(('info', 'debug', 'warning'))}('%d {thing}s, {kind}', len({thing}s))\n"
        f"    return {thing}s\n",
        f"    try:\n"
        f"        {name} = await self.{draw.thing()}.{draw.action()}({thing}s, timeout={draw.below(600) / 10})\n"
        f"    except TimeoutError:\n"
        f"        self.{other} += 1\n"
        f"        return None\n"
        f"    return {name}.{draw.thing()} if {name}.{kind} else self.{draw.action()}({name})\n",
    )
    which = draw.below(len(bodies))
    head = "async def" if which == 3 else "def"
    arguments = ("self, " if which == 3 else "path: Path, " if which == 2 else "") + f"{thing}s: list[{thing.capitalize()}]"
    return (
        f"{head} {action}_{name}({arguments}) -> {draw.one(('list', 'dict', 'object'))} | None:\n"
        f'    """{action.capitalize()} the {draw.kind()} {thing}s of a {draw.thing()}; {kind} ones come last."""\n'
        f"{bodies[which]}"
    )


def _python_class(draw: _Draw) -> str:
    thing, fields = draw.thing(), [draw.name() for _ in range(2 + draw.below(4))]
    kinds = [draw.one(("int", "str", "float", "bytes", "list[str]", "dict[str, int]")) for _ in fields]
    lines = [f"class {draw.kind().capitalize()}{thing.capitalize()}:"]
    lines += [f"    {field}: {kind}" for field, kind in zip(fields, kinds, strict=True)]
    lines += ["", f"    def {draw.action()}(self, {draw.thing()}: int = {draw.below(5000)}) -> bool:"]
    lines += [f"        return self.{fields[0]} is not None and {draw.below(100)} < self.{fields[1]}.{draw.action()}()"]
    return "\n".join(lines) + "\n"


def _typescript(draw: _Draw) -> str:
    thing, other = draw.thing(), draw.thing()
    function = _camel(draw.action(), draw.kind(), thing)
    return (
        f"export async function {function}({thing}s: {thing.capitalize()}[], signal?: AbortSignal): Promise<number> {{\n"
        f"  const {_camel(draw.kind(), other)} = {thing}s.filter((it) => it.{draw.kind()} !== undefined);\n"
        f"  const response = await fetch(`/api/{other}s/${{{thing}s.length}}?limit={draw.below(900)}`, {{ signal }});\n"
        f"  if (!response.ok) throw new Error(`{draw.action()} failed: ${{response.status}}`);\n"
        f"  const {{ {draw.thing()}s = [] }} = await response.json();\n"
        f"  return {thing}s.reduce((sum, it) => sum + (it.{draw.thing()} ?? {draw.below(64)}), 0);\n"
        f"}}\n"
    )


def _go(draw: _Draw) -> str:
    thing, kind = draw.thing(), draw.kind()
    receiver, short = draw.thing().capitalize(), thing[0]
    return (
        f"func ({receiver[0].lower()}r *{receiver}) {draw.action().capitalize()}{kind.capitalize()}(ctx context.Context, "
        f"{thing}s []{thing.capitalize()}) (int, error) {{\n"
        f"\t{_camel(kind, 'count')} := 0\n"
        f"\tfor i, {short} := range {thing}s {{\n"
        f"\t\tif err := {short}.{draw.action().capitalize()}(ctx, i<<{draw.below(16)}); err != nil {{\n"
        f'\t\t\treturn 0, fmt.Errorf("{draw.action()} {thing} %d: %w", i, err)\n'
        f"\t\t}}\n"
        f"\t\t{_camel(kind, 'count')}++\n"
        f"\t}}\n"
        f"\treturn {_camel(kind, 'count')}, nil\n"
        f"}}\n"
    )


def _shell(draw: _Draw) -> str:
    thing, other, kind, action = draw.thing(), draw.thing(), draw.kind(), draw.action()
    directory, number = f"/var/lib/{other}", draw.below(90)
    lines = (
        f"$ find {directory} -name '*.{thing}' -mtime +{number} -print0 | xargs -0 -n {1 + draw.below(32)} gzip -9",
        f"$ curl -fsS http://localhost:{8000 + draw.below(999)}/{thing}s | jq -r '.[] | select(.{kind}) | .{other}'",
        f'for {thing} in "${{{other.upper()}S[@]}}"; do {action}-{other} --{kind} "${thing}" || exit {number}; done',
        f"{draw.below(60)} {draw.below(24)} * * {draw.below(7)}  /usr/bin/{action}-{thing} --keep {number} >> {directory}/log",
        f"git commit -m '{thing}: {action} {kind} {other}s before {draw.action()}'",
        f"awk -F: '$3 >= {draw.below(5000)} {{ n[$1] += $2 }} END {{ for (k in n) print k, n[k] }}' {directory}/{kind}.txt",
    )
    first = draw.below(len(lines))
    return "\n".join(lines[(first + i) % len(lines)] for i in range(2 + draw.below(3))) + "\n"


def _json(draw: _Draw) -> str:
    document = {
        "id": f"{draw.below(1 << 32):08x}",
        draw.thing(): {draw.name(): draw.below(10_000), draw.name(): draw.below(1000) / 8, "tags": [draw.kind(), draw.kind()]},
        f"{draw.thing()}s": [{"name": draw.name(), draw.kind(): bool(draw.below(2))} for _ in range(1 + draw.below(3))],
    }
    return json.dumps(document, indent=2) + "\n"


def _diff(draw: _Draw) -> str:
    path, name, other = f"src/{draw.thing()}/{draw.name()}.py", draw.name(), draw.name()
    line = 1 + draw.below(900)
    return (
        f"--- a/{path}\n"
        f"+++ b/{path}\n"
        f"@@ -{line},5 +{line},6 @@ def {draw.action()}_{draw.thing()}(self):\n"
        f"     {name} = self.{draw.thing()}.{draw.action()}()\n"
        f"-    if {name} > {draw.below(300)}:\n"
        f"-        return {other}\n"
        f"+    if {name} >= {draw.below(300)} and not {other}.{draw.kind()}:\n"
        f"+        self.{draw.thing()}s.append({other})\n"
        f"+        return {draw.action()}({other}, {draw.thing()}={name})\n"
        f"     return None\n"
    )


_LANGUAGES: tuple[Callable[[_Draw], str], ...] = (
    _python_function, _python_class, _python_function, _typescript, _go, _shell, _json, _diff,
)  # fmt: skip
