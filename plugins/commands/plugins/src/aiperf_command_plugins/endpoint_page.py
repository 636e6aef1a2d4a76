"""The reference of endpoint types as Markdown, from the manifests."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec
from aiperf import Capabilities
from aiperf.sdk.descriptor import PluginDocs
from aiperf.sdk.registry import Descriptor, InstalledPlugins

_HEAD = """\
# Endpoint types

Generated from the manifests of the installed packages by `aiperf plugins endpoints --markdown`. `--endpoint-type NAME` takes a
name in any case, with `-` or `_`. *Streams*: with `--streaming`. *Tokens out*: metrics of tokens, TTFT and ITL apply. *Tokens
in*: the input is counted, by what was sent. *Turns*: a conversation's history is sent. *Tried on*: the report of a run had the
server's own counts of requests and tokens (`make test-real`); or what else stands there.

`make test-real` runs pinned versions, one server at a time: llama.cpp compiled from the sources of build 11434; vLLM 0.32 on
the CPU and transformers 5.23 from their packages. In its last whole run all 19 rows agreed:

- llama.cpp and vLLM: usage in the report is what the server's own counters rose by.
- transformers serve: requests are those of its log; usage is that of the same request, sent by hand.
- `completions` on all three, and `chat`, `messages` and `responses` with `--apply-chat-template`: the input tokens counted here
  are the server's prompt tokens.
- vLLM's `chat` and `completions`: its own time to the first token (`server_timing`) is below the client's.
"""
COLUMNS = """\
| type | path | streams | tokens out | tokens in | media in | turns | heading |
|---|---|---|---|---|---|---|---|"""


class EndpointRow(Protocol):
    """What the manifest says of an endpoint type: its row there, or the descriptor."""

    @property
    def name(self) -> str: ...

    @property
    def aliases(self) -> tuple[str, ...]: ...

    @property
    def capabilities(self) -> dict[str, Any]: ...

    @property
    def docs(self) -> PluginDocs: ...


def page(registry: InstalledPlugins) -> str:
    """The whole page; every installed endpoint has its row and its section."""
    plugins = registry.all("endpoints")
    rows = [row(plugin, f"[`{plugin.name}`](#{plugin.name})") for plugin in plugins]
    return "\n".join([_HEAD, COLUMNS, *rows, *(line for plugin in plugins for line in _section(plugin))])


def _facts(plugin: EndpointRow) -> Capabilities:
    return msgspec.convert(plugin.capabilities, Capabilities)


def row(plugin: EndpointRow, title: str = "") -> str:
    """The row of an endpoint type below ``COLUMNS``; *title* replaces the name in its first cell."""
    facts = _facts(plugin)
    paths = dict.fromkeys(path for path in (facts.path, facts.streaming_path) if path)
    tokens = "when streamed" if facts.tokens_streamed else facts.produces_tokens
    flags = (facts.streaming, tokens, facts.tokenizes_input)
    cells = [
        title or f"`{plugin.name}`",
        ", ".join(f"`{path}`" for path in paths) or "the URL as it is",
        *(flag if isinstance(flag, str) else "yes" if flag else "no" for flag in flags),
        ", ".join(facts.media_in) or "none",
        "yes" if facts.multi_turn else "no",
        facts.title,
    ]
    return f"| {' | '.join(cells)} |"


def _section(plugin: Descriptor) -> list[str]:
    lines = ["", f"## {plugin.name}", "", plugin.summary, *notes(plugin)]
    flags = ", ".join(f"`{option.flags[0]}`" for option in plugin.options if not option.hidden)
    return [*lines, "", f"Options: {flags}."] if flags else lines


def notes(plugin: EndpointRow) -> list[str]:
    """Paragraphs below the row, or below the summary: other names, an example, notes, and where it was tried."""
    docs, lines = plugin.docs, []
    if plugin.aliases:
        lines += ["", f"Also called {', '.join(f'`{alias}`' for alias in plugin.aliases)}."]
    if docs.example:
        lines += ["", "```sh", f"aiperf profile {docs.example}", "```"]
    for note in docs.notes:
        lines += ["", note]
    if _facts(plugin).chat_template:
        lines += ["", "`--apply-chat-template` counts the messages in the model's chat template."]
    tried = "; ".join(docs.servers)
    return [*lines, "", f"Tried on {tried}." if tried else "Not tried on a real server yet."]
