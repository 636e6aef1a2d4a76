"""What a run was made with: model, data, tokenizer, seed, versions, machines; and where runs differ in it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aiperf.sdk.redaction import shown_fields
from aiperf_plotting.caption import facts

from aiperf_report_page.opening import ReportedRun

_MOST = 160
"""Characters of a value in a sentence."""
_REDACTED = "<redacted>"
_HEADERS = frozenset(("headers", "header", "extra_headers", "H"))
"""Keys of a configuration whose values may be secret, whatever the names of the headers."""
_NO_DATA = frozenset(("random_seed", "goodput", "entries", "num_dataset_entries"))
"""Keys that say nothing of what is asked."""
_SECRET_FLAGS = frozenset(("--api-key", "--header", "-H", "--headers"))


def configuration(run: ReportedRun) -> dict[str, Any]:
    """The options of the run by section, without secrets and values of headers."""
    shown: dict[str, Any] = _without_headers(shown_fields(run.section("input_config")))
    shown.pop("cli_command", None)
    return shown


def _without_headers(value: Any, hidden: bool = False) -> Any:
    if isinstance(value, dict):
        return {name: _without_headers(each, hidden or name in _HEADERS) for name, each in value.items()}
    if isinstance(value, list):
        if hidden and len(value) == 2 and all(isinstance(each, str) for each in value) and ":" not in value[0]:
            return [value[0], _REDACTED]  # name and value
        return [_without_headers(each, hidden) for each in value]
    if not hidden or not isinstance(value, str):
        return value
    name, colon, _ = value.partition(":")
    return f"{name}: {_REDACTED}" if colon else _REDACTED


def command(run: ReportedRun) -> str:
    """The command line of the run, without keys and values of headers; "" where the results lack it."""
    known = run.section("run_info").get("cli_command") or run.section("input_config").get("cli_command")
    if not isinstance(known, str):
        return ""
    try:
        words = shlex.split(known)
    except ValueError:  # an open quote: the values can't be told from the rest
        return known if not any(flag in known for flag in _SECRET_FLAGS) else "(not shown: it has a key, and can't be parsed)"
    if not any(word.partition("=")[0] in _SECRET_FLAGS for word in words):
        return known
    shown, secret = [], False
    for word in words:
        flag, equals, _ = word.partition("=")
        if flag in _SECRET_FLAGS:
            secret = not equals
            shown.append(f"{flag}={_REDACTED}" if equals else flag)
        elif secret and not word.startswith("-"):
            shown.append(_REDACTED)
        else:
            secret = False
            shown.append(shlex.quote(word))
    return " ".join(shown)


def models(run: ReportedRun) -> str:
    return ", ".join(facts(run.run).models)


def endpoint(run: ReportedRun) -> str:
    """The type of the endpoint, and whether answers were streamed."""
    about = _object(configuration(run), "endpoint")
    kind = str(about.get("type") or "")
    return f"{kind}{', streaming' if about.get('streaming') else ', not streaming' if kind else ''}"


def servers(run: ReportedRun) -> str:
    urls = _object(configuration(run), "endpoint").get("urls") or _object(configuration(run), "endpoint").get("url") or ""
    return ", ".join(map(str, urls)) if isinstance(urls, list) else str(urls)


def dataset(run: ReportedRun) -> str:
    """The data set with its settings, without its seed and the number of its entries, which the load decides."""
    config = configuration(run)
    found = config.get("datasets") or config.get("input")
    source = run.section("metadata").get("dataset")
    used = run.section("plugins").get("used")
    options = [each.get("options") for each in used or () if isinstance(each, dict) and each.get("category") == "datasets"]
    wanted = [_without_seed(shown_fields(each)) for each in (found, *options) if each]
    told = "; ".join(json.dumps(each, sort_keys=True, default=str) for each in wanted)
    return f"{told}, from {json.dumps(source, sort_keys=True, default=str)}" if source else told


def _without_seed(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_seed(each) for name, each in value.items() if name not in _NO_DATA}
    return [_without_seed(each) for each in value] if isinstance(value, list) else value


def tokenizer(run: ReportedRun) -> str:
    return str(_object(configuration(run), "tokenizer").get("name") or "")


def seed(run: ReportedRun) -> str:
    config = run.section("input_config")
    sets = config.get("datasets")
    first = sets[0] if isinstance(sets, list) and sets and isinstance(sets[0], dict) else {}
    known = (run.section("run_info"), config, _object(config, "input"), first)
    return next((str(each["random_seed"]) for each in known if each.get("random_seed") is not None), "")


def version(run: ReportedRun) -> str:
    known = str(run.summary.get("aiperf_version") or "")
    return f"{known} of this program" if "plugins" in run.summary else known


def plugins(run: ReportedRun) -> dict[str, str]:
    """By category and name, the package and version of each plugin of the run."""
    used = run.section("plugins").get("used", [])
    return {
        f"{each.get('category')}:{each.get('name')}": f"{each.get('distribution')} {each.get('version')}"
        for each in used if isinstance(each, dict)
    } if isinstance(used, list) else {}  # fmt: skip


def machines(run: ReportedRun) -> str:
    """What the results tell of machines: whether the server was on the client's, what that is, and the GPUs beside the load."""
    found = []
    if (loopback := run.section("measurement").get("loopback")) is not None:
        found.append("server and client on one machine" if loopback else "server on another machine")
    if isinstance(client := run.section("measurement").get("machine"), str):
        found.append(f"client: {client}")
    names: dict[str, int] = {}
    endpoints = _object(run.section("telemetry_data"), "endpoints")
    gpus = [_object(_object(endpoints, host), "gpus") for host in endpoints]
    for gpu in (_object(each, name) for each in gpus for name in each):
        name = " on ".join(filter(None, (str(gpu.get("gpu_name") or "GPU"), str(gpu.get("hostname") or ""))))
        names[name] = names.get(name, 0) + 1
    return "; ".join([*found, *(f"{count} × {name}" for name, count in names.items())])


CONDITIONS: Mapping[str, Callable[[ReportedRun], str]] = {
    "model": models, "endpoint": endpoint, "data set": dataset, "tokenizer": tokenizer, "seed": seed, "version": version,
    "machine": machines, "server": servers,
}  # fmt: skip
"""What should be alike where the numbers of runs are compared, by its name for people; "" is unknown."""


def warnings(runs: Sequence[ReportedRun]) -> list[str]:
    """A sentence on each condition in which a run differs from the first, the baseline, or which is not known of both."""
    baseline, *others = runs
    found = []
    for name, condition in CONDITIONS.items():
        base = condition(baseline)
        unlike: dict[str, list[str]] = {}
        for run in others:
            if (value := condition(run)) != base:
                unlike.setdefault(value, []).append(run.label)
        for value, labels in unlike.items():
            of = ", ".join(labels)
            if not value or not base:
                found.append(f"the {name} of {of if not value else baseline.label} is not in the results")
            else:
                found.append(f"the {name} differs: {baseline.label} has {_cut(base)}, {of} has {_cut(value)}")
    changes = ((run.label, _other_plugins(run, baseline)) for run in others)
    found += [f"plugins differ: {label} has {changed}" for label, changed in changes if changed]
    return list(dict.fromkeys(found))


def _other_plugins(run: ReportedRun, baseline: ReportedRun) -> str:
    mine, base = plugins(run), plugins(baseline)
    if not mine or not base:
        return ""
    changed = [f"{name} of {mine[name]} (baseline {base[name]})" for name in mine if name in base and mine[name] != base[name]]
    changed += [f"{name}, which the baseline lacks" for name in mine if name not in base]
    changed += [f"no {name}" for name in base if name not in mine]
    return f"{', '.join(changed[:8])}{' and others' if len(changed) > 8 else ''}"


def _object(parent: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = parent.get(name)
    return found if isinstance(found, dict) else {}


def _cut(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[:_MOST]}…"


__all__ = ["CONDITIONS", "command", "configuration", "plugins", "warnings"]
