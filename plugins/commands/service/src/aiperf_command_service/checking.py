"""Checks a posted file as ``aiperf profile --config`` would, in a process of its own, and what it may name on this machine.

python -m aiperf_command_service.checking: an :class:`Ask` on standard input, a :class:`Found` on standard output.

A file may be hostile: the process has a bound of memory and of time, and the environment that posted runs may see.  A file may
have keys: it stays in memory.
"""

from __future__ import annotations

import os
import re
import resource
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from aiperf import AiperfError
from aiperf.parts.plans import AskedRuns, asked, told
from aiperf.parts.registry import Registry
from aiperf.sdk.configuration import OptionValue
from aiperf.sdk.errors import ConfigErrors

from aiperf_command_service.messages import Ask, Fault, Found

MOST_BYTES, MOST_CPU_S = 2 << 30, 30
_PLACE = re.compile(r"(?P<path>\S+) \([^()]*:(?P<line>\d+)\): (?P<sentence>.*)", re.DOTALL)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
OWN = frozenset((
    "artifact_dir", "api_port", "api_host", "api_token", "ui", "zmq_ipc_path", "zmq_host", "config", "stats_interval",
))  # fmt: skip
"""Fields of options that are the service's."""


def fault_of(error: AiperfError) -> Fault:
    """An error of the program, its place told apart from its sentence."""
    match = _PLACE.fullmatch(error.message)
    if match is None:
        return Fault(error.message, hints=error.hints)
    return Fault(match["sentence"], match["path"], int(match["line"]), error.hints)


def check(file: Path, ask: Ask) -> Found:
    """What the file asks for.  What it may not name is told first: nothing that it names is opened before."""
    words, registry = ["--config", str(file), "--artifact-dir", ask.results], Registry.discover()
    try:
        if not ask.trusted:
            refused = {(fault.path, fault.sentence): fault for fault in forbidden(told(registry, words), ask)}
            if refused:
                return Found([*refused.values()])
        found = asked(registry, words)
    except AiperfError as error:
        faults = [fault_of(each) for each in (error.errors if isinstance(error, ConfigErrors) else [error])]
        for fault in faults:
            fault.sentence = fault.sentence.replace(str(file), "the file")
        return Found(faults)
    except RecursionError:
        return Found([Fault("the file is nested too deeply")])
    values = [*found.given, *(value for cell in found.cells for value in cell.given)]
    plan = found.plan
    return Found(
        label=_label(found), runs=sum(cell.runs for cell in found.cells), models=list(plan.target.models),
        urls=list(plan.public().target.urls), endpoint=plan.plugins.endpoint.name,
        cells=[cell.cell.label or cell.cell.name for cell in found.cells][:1000], secrets=sorted(secrets_of(values), key=len),
    )  # fmt: skip


def _label(found: AskedRuns) -> str:
    plan = found.plan
    kind = f", {len(found.cells)} cells" if len(found.cells) > 1 else ""
    return f"{', '.join(plan.target.models)}, {plan.plugins.endpoint.name}{kind}"


def forbidden(values: Iterable[OptionValue], ask: Ask) -> Iterator[Fault]:
    """What a posted file names and may not."""
    for value in values:
        spec = value.option.spec
        if spec.field in OWN and value.typed.startswith("--"):
            continue  # ours, on the line
        if spec.field in OWN:
            yield _refused(value, "the service says that itself", "leave it out")
            continue
        for text in value.values:
            if spec.type == "path" and text != "-":
                yield from _path(value, text, ask)
            elif ask.urls and _URL.match(text) and not any(within(text, prefix) for prefix in ask.urls):
                yield _refused(
                    value, f"{_plain(text)} is none of the URLs that runs may use", f"they begin with {', '.join(ask.urls)}"
                )


def _path(value: OptionValue, text: str, ask: Ask) -> Iterator[Fault]:
    if ask.data is None:
        yield _refused(
            value, "posted runs may name no files here", "start the service with --data DIR, and put the files there"
        )
        return
    data = Path(ask.data)
    # A file may have its type before it (mooncake_trace:FILE), and be a URL (file:///FILE).
    names = {text, *(text.split(":", count)[-1] for count in range(1, text.count(":") + 1))}
    for name in names:
        plain = name.removeprefix("//localhost").removeprefix("//") if name.startswith("//") else name
        if not (data / plain).resolve().is_relative_to(data):
            yield _refused(value, f"{text} is not below {data}", "posted runs may name files below --data alone")
            return


def within(url: str, prefix: str) -> bool:
    """Whether a URL begins with a prefix: the same scheme, host and port, and a path at or below the prefix's."""
    try:
        one, other = urlsplit(url), urlsplit(prefix)
        same = (one.scheme.lower(), one.hostname, one.port) == (other.scheme.lower(), other.hostname, other.port)
    except ValueError:
        return False
    base = other.path.rstrip("/")
    return (
        same
        and "@" not in one.netloc
        and (not base or one.path == base or one.path.startswith(f"{base}/"))
        and ".." not in one.path
    )


def _plain(url: str) -> str:
    return re.sub(r"//[^/@]*@", "//…@", url)[:200]


def _refused(value: OptionValue, sentence: str, hint: str) -> Fault:
    place = re.fullmatch(r"(?P<path>\S+) \([^()]*:(?P<line>\d+)\)", value.typed)
    if place is None:
        return Fault(f"{value.typed}: {sentence}", hints=(hint,))
    return Fault(sentence, place["path"], int(place["line"]), (hint,))


def secrets_of(values: Iterable[OptionValue]) -> set[str]:
    """Texts of options that are secrets; of a header its value alone."""
    found = set()
    for value in values:
        if value.option.spec.secret:
            for text in value.values:
                found.add(text.partition(":")[2].strip() if value.option.spec.metavar == "NAME:VALUE" else text.strip())
    return {text for text in found if text}


def check_in_memory(ask: Ask) -> Found:
    """Check the content of *ask*, which no disk has."""
    file = os.memfd_create("run")
    try:
        with os.fdopen(os.dup(file), "wb") as out:
            out.write(ask.content)
        return check(Path(f"/proc/self/fd/{file}"), ask)
    finally:
        os.close(file)


def bounded(ask: Ask) -> Found:
    """The same by a process that ends afterwards: from now on it has bounds of time and memory."""
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    try:
        return check_in_memory(ask)
    except MemoryError:
        return Found([Fault(f"the file takes more than {MOST_BYTES >> 30} GiB of memory to read")])


def main() -> int:
    ask = msgspec.json.decode(sys.stdin.buffer.read(), type=Ask)
    answer = os.dup(1)
    os.dup2(2, 1)  # what a plugin prints is no answer
    found = bounded(ask)
    with os.fdopen(answer, "wb") as out:
        out.write(msgspec.json.encode(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
