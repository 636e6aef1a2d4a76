"""Every name of the reference (tests/reference) is here and equal, or has an answer, or a row that says why it is not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from aiperf import environment
from aiperf.cli.main import _commands
from aiperf.registry.guides import unknown_command, unknown_option, where_is
from aiperf.registry.registry import Registry
from aiperf.sdk.descriptor import OptionSpec
from aiperf_command_plugins.variable_page import KERNEL
from aiperf_hook_other_tools.words import COMMANDS, LATER_OPTIONS, OTHER_TOOLS
from aiperf_metric_energy.rows import rows as of_energy

ROOT = Path(__file__).parent.parent
REFERENCE = Path(__file__).parent / "reference"
LISTS = {
    "endpoint": "endpoints", "transport": "transports", "custom_dataset_loader": "datasets",
    "public_dataset_loader": "datasets", "dataset_sampler": "samplers", "timing_strategy": "schedules",
    "arrival_pattern": "arrivals", "ramp": "ramps", "ui": "uis",
    "url_selection_strategy": "url_strategies", "gpu_telemetry_collector": "telemetry", "accuracy_grader": "graders",
    "accuracy_benchmark": "datasets", "scenario": "scenarios",
}  # fmt: skip
"""Our categories for those of the reference."""
SAME = {"user_centric_rate": "user_centric", "dcgm": "gpu_dcgm", "pynvml": "gpu_nvml", "amdsmi": "gpu_amd",
    "inferencex-agentx-mvp": "inferencex_agentx_mvp",
}  # fmt: skip
"""Names of parts that no person types, and one with other hyphens."""
TYPED = {
    "--artifact-dir": "one directory for each load, below ./artifacts, as the reference has it",
    "--fixed-schedule-auto-offset": "on in effect there, too: timing of its replay",
    "--image-format": "what its converter sends, whatever its help says", "--video-duration": "likewise",
    "--rankings-passages-mean": "likewise", "--rankings-passages-prompt-token-mean": "likewise",
    "--rankings-query-prompt-token-mean": "likewise",
    "--video-audio-sample-rate": "44.1 kHz is 44100 Hz, both are read",
    "--fixed-schedule": "on for traces with times there, too", "--num-dataset-entries": "by the number of requests there, too",
    "--ui-type": "dashboard on a terminal that is not too small", "--block-size": "of mooncake_trace 512",
    "--no-fixed-schedule": "a switch", "--zmq-host": "loopback, where a port is used at all",
    "--gpu-telemetry": "the exporters that the reference tries, too",
    "--output": "of agentic-code the same", "--convergence-mode": "ci_width is read, too",
}  # fmt: skip
"""Options whose default reads otherwise, and why."""


@cache
def reference(name: str) -> Any:
    return json.loads((REFERENCE / f"{name}.json").read_text())


@cache
def registry() -> Registry:
    return Registry.discover()


@cache
def options(command: str) -> dict[str, tuple[OptionSpec, bool]]:
    """Our options by flag; False for the flag that switches one off."""
    found: dict[str, tuple[OptionSpec, bool]] = {}
    for each in (one for one in _commands(registry(), everything=True) if one.name == command):
        for option in each.options:
            found |= dict.fromkeys(option.spec.flags, (option.spec, True))
            if option.spec.negative:
                found[option.spec.negative] = (option.spec, False)
    return found


@cache
def rows() -> list[tuple[str, list[str]]]:
    """Patterns of names, and of what, in the two tables of docs/differences.md."""
    found = []
    page = (ROOT / "docs" / "differences.md").read_text()
    for heading in ("Left out", "In a later version"):
        section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
        for line in section.splitlines():
            if line.startswith("| `"):
                names, kinds, why = (cell.strip() for cell in line.strip("|").split("|"))
                assert why, line
                found += [(name, kinds.split(", ")) for name in re.findall(r"`([^`]+)`", names)]
    return found


def told(name: str, kind: str) -> bool:
    return any(fnmatchcase(name, pattern) and kind in kinds for pattern, kinds in rows())


def installed(category: str) -> Iterator[str]:
    for plugin in registry().all(category):
        yield plugin.name
        yield from plugin.capabilities.get("names", ())


def of_profile() -> list[dict[str, Any]]:
    return list(reference("options")["profile"])


def spelled(row: dict[str, Any]) -> list[str]:
    return [*row["names"], *filter(None, [row.get("negative")])]


def test_every_option_is_here_or_answered() -> None:
    known = options("profile")
    missing = [flag for row in of_profile() for flag in spelled(row) if flag not in known]
    plain = [flag for flag in missing if not unknown_option(flag, registry()) and not told(flag, "profile")]
    assert plain == [], "neither an option, nor an answer, nor a row"
    assert len(missing) < 140, "an option was lost"


def test_all_names_of_an_option_are_one_option() -> None:
    known = options("profile")
    for row in of_profile():
        if row["names"][0] in known:
            assert {known[name][0] for name in row["names"]} == {known[row["names"][0]][0]}, row["names"]


def test_an_option_takes_what_it_takes_in_the_reference() -> None:
    known = options("profile")
    for row in of_profile():
        if row["names"][0] not in known:
            continue
        spec = known[row["names"][0]][0]
        assert (spec.arity == "none") == (row["kind"] == "flag"), spec.flags
        ours = {choice.replace("-", "_") for choice in spec.choices}
        theirs = {value.replace("-", "_") for value in row.get("values", ())}
        left = {value for value in theirs - ours if not told(value, row["names"][0].strip("-").replace("-", "_"))}
        assert not ours or not left, (spec.flags, left)


def as_number(text: object) -> object:
    try:
        return float(str(text))
    except ValueError:
        return str(text)


@pytest.mark.parametrize("command", ["profile", "plot", "analyze-trace", "synthesize", "validate", "plugins"])
def test_a_default_is_that_of_the_reference(command: str) -> None:
    known = options(command)
    for row in reference("options")[command]:
        flag = next((name for name in row["names"] if name in known), "")
        default = row["default"]
        if not flag or default in (None, False, []) or set(row["names"]) & TYPED.keys():
            continue
        spec = known[flag][0]
        wanted = "on" if default is True else default[0] if isinstance(default, list) and len(default) == 1 else default
        words = ",".join(wanted) if isinstance(wanted, list) else wanted
        assert as_number(spec.default) == as_number(words), (flag, spec.default)


@pytest.mark.parametrize("command", ["plot", "analyze-trace", "synthesize", "validate", "plugins"])
def test_every_option_of_another_command_is_here_or_has_a_row(command: str) -> None:
    for row in reference("options")[command]:
        for flag in spelled(row):
            assert flag in options(command) or told(flag, command) or row.get("word"), (command, flag)


def test_every_command_is_here_or_answered() -> None:
    ours = {one.name for one in _commands(registry())}
    for command in filter(None, reference("options")):
        if command not in ours:
            assert told(command, "commands"), command
            first = command.split()[0]
            assert first in ours or unknown_command(first, registry()), command


def test_every_name_of_a_list_is_here_or_has_a_row() -> None:
    for kind, names in reference("names").items():
        have = set(installed(LISTS[kind])) if kind in LISTS else set()
        aliases = {"http": "kernel"} if kind == "transport" else SAME
        plain = [name for name in names if aliases.get(name, name) not in have and not told(name, kind)]
        assert plain == [], kind


def test_a_name_that_a_later_version_has_is_answered_where_it_is_typed() -> None:
    asked = {kind: LISTS[kind] for kind in ("endpoint", "custom_dataset_loader", "public_dataset_loader", "ramp", "ui",
             "accuracy_grader", "accuracy_benchmark")}  # fmt: skip
    for kind, category in asked.items():
        have = set(installed(category))
        for name in reference("names")[kind]:
            assert name in have or where_is(category, name, registry()), name


def test_every_metric_is_here_or_has_a_row() -> None:
    made = "\n".join(path.read_text() for path in ROOT.glob("plugins/metrics/*/src/*/*.py"))
    have = set(registry().names("metrics")) | set(re.findall(r'"([a-z_0-9]+)"', made))
    have |= {each.tag for each in of_energy(None, None)}
    assert [tag for tag in reference("metrics") if tag not in have and not told(tag, "metrics")] == []


def test_every_file_is_here_or_has_a_row() -> None:
    text = "\n".join(path.read_text() for folder in ("core/src", "plugins") for path in (ROOT / folder).rglob("*.py"))
    for name in reference("files"):
        assert (name.split("/")[-1] in text and name.split("/")[-1]) or told(name, "files"), name


def test_every_variable_is_read_or_has_a_row() -> None:
    patterns = re.findall(r"`(AIPERF_[A-Z0-9_]+\*?)`", (ROOT / "docs" / "variables.md").read_text())
    of_plugins = {name for category in registry().categories() for plugin in registry().all(category)
                  for name in plugin.docs.variables}  # fmt: skip
    for name in reference("variables"):
        assert name in of_plugins or any(fnmatchcase(name, pattern) for pattern in patterns), name


def test_the_kernel_knows_its_own_variables() -> None:
    assert {row[0] for row in KERNEL} == environment.NAMES


def test_no_row_stays_where_its_name_is_installed() -> None:
    for kind, names in reference("names").items():
        have = set(installed(LISTS[kind])) if kind in LISTS else set()
        assert [name for name in names if name in have and told(name, kind)] == [], "take it out of docs/differences.md"
    flags = set(options("profile"))
    assert not flags & (OTHER_TOOLS | LATER_OPTIONS).keys(), "take it out of the words of other tools"


def test_an_answer_names_only_options_that_there_are() -> None:
    flags = {flag for command in ("profile", "plot", "report") for flag in options(command)} | {"--help", "--version"}
    answers: Iterable[tuple[str, str]] = [*OTHER_TOOLS.items(), *LATER_OPTIONS.items(), *COMMANDS.items()]
    for word, answer in answers:
        assert set(re.findall(r"(?<!\w)--[a-z][a-z-]+", answer)) <= flags, word
