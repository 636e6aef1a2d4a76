"""The sections of a file with a form of their own, and the whole of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from aiperf import UsageError
from aiperf.sdk.configuration import OptionValue
from aiperf.sdk.descriptor import canonical
from msgspec.structs import replace

from aiperf_configuration_yaml.entries import Entry, flow
from aiperf_configuration_yaml.phases import Phases
from aiperf_configuration_yaml.places import Places, PlaceTable
from aiperf_configuration_yaml.records import written
from aiperf_configuration_yaml.sweeps import SPACE
from aiperf_configuration_yaml.values import FileValues, texts

TOP = ("schema_version", "random_seed", "pins", "disabled", "benchmark", "variables", "sweep", "multi_run", "no_sweep_table")
"""Keys of a file; all but ``benchmark``, ``variables`` and ``schema_version`` have options."""
_POOLS = "random_pool"
_REPLAYED = "profiling.type (fixed_schedule)"
_GPU_ITEMS = "gpu_telemetry.items"
_COLLECTORS, _MODES = ("dcgm", "pynvml", "amdsmi"), ("summary", "realtime_dashboard")
_OF_A_FILTER = ("metric_tag", "stat", "op", "threshold")


class Reading:
    """The options of a file's values.  *variables*: those of the file, for files that are rendered in the run."""

    def __init__(self, file: FileValues, table: PlaceTable, variables: Mapping[str, Any]) -> None:
        self._file, self._variables = file, variables
        self._user_file: Entry | None = None
        self._plot: Entry | None = None
        self._places = Places(file, table)
        self._phases = phases = Phases(self._places)
        self._places.special |= {
            "models.items": self._models, "dataset": self._dataset, "warmup": phases.warmup, "profiling": phases.profiling,
            "artifacts.records": self._records,
            "artifacts.raw": lambda entry: self._level("raw", entry) if self._file.on(entry) else None,
            "artifacts.summary": self._summary, "artifacts.user_files": self._user_files, "plugins": self._places.of_plugins,
        }  # fmt: skip
        if _GPU_ITEMS in table.by_place:
            self._places.special["gpu_telemetry"] = self._gpu_telemetry

    def whole(self, sections: Mapping[str, Entry], benchmark: Entry | None, name: str) -> None:
        """Take what stands in a file.  *benchmark*: in its one shape."""
        for key, entry in sections.items():
            if key == "schema_version":
                if str(entry.value) not in ("2.0", "2"):
                    self._file.wrong(entry, f"{entry.value!r} can't be read; 2.0 can")
            elif key == "pins":
                named = [Entry(entry.path, entry.line, one) for one in pins(entry)]
                self._file.take(self._places.by_place[key], Entry(entry.path, entry.line, named))
            elif key == "sweep":
                self._sweep(entry)
            elif key == "plot":
                self._plot = entry if entry.value not in (None, False, {}, []) else None  # behind artifacts.auto_plot
            elif key in TOP and key not in ("benchmark", "variables"):
                self._places.walk(key, entry)
            elif key not in TOP and key in self._places.below(""):
                self._file.wrong(entry, "it belongs below benchmark:", f"write benchmark: {{{key}: …}}")
            elif key not in TOP:
                self._file.unknown(entry, key, TOP)
        if "benchmark" not in sections:
            self._file.errors.append(UsageError(f"{name}: benchmark: is missing, with what the run is made of"))
        elif benchmark is not None:
            self._places.each(benchmark.value)
            self._keep_type()
        if self._user_file is not None:
            self._take_user_files(self._user_file)
        if self._plot is not None:
            self._take_plot(self._plot)

    def _keep_type(self) -> None:
        """A phase of another type does not become a replay because the file of the data set has recorded times."""
        taken = {spec.place for spec in self._file.given}
        if self._phases.untimed is not None and "dataset.path" in taken and _REPLAYED not in taken:
            option = self._places.by_place[_REPLAYED]
            self._file.given[option.spec] = OptionValue(option, self._file.where(self._phases.untimed), [], False)

    def _sweep(self, entry: Entry) -> None:
        """The options in the section; the others of its keys are the planner's."""
        if isinstance(entry.value, dict):
            for key, below in self._file.named(entry).items():
                if key not in SPACE and f"sweep.{key}" in self._places.by_place:
                    self._places.walk(f"sweep.{key}", self._filters(below) if key == "sla_filters" else below)

    def _filters(self, entry: Entry) -> Entry:
        """``{metricTag: …, stat: …, op: …, threshold: …}`` as the option has it: ``TAG:STAT:OP:NUMBER``, by default of p95."""
        made = []
        for one in entry.value if isinstance(entry.value, list) else [entry]:
            if isinstance(one.value, dict):
                keys = self._file.named(one)
                for key in keys.keys() - set(_OF_A_FILTER):
                    self._file.unknown(keys[key], key, _OF_A_FILTER)
                words = [keys[key].plain if key in keys else "p95" if key == "stat" else "" for key in _OF_A_FILTER]
                one = Entry(one.path, one.line, ":".join(map(str, words)))  # noqa: PLW2901  # in the option's form
            made.append(one)
        return Entry(entry.path, entry.line, made)

    def _models(self, entry: Entry) -> None:
        """A name, names, or mappings with a name; other keys of a model are refused."""
        names = []
        for one in entry.value if isinstance(entry.value, list) else [entry]:
            if not isinstance(one.value, dict):
                names.append(one)
                continue
            for key, below in self._file.named(one).items():
                if key == "name":
                    names.append(below)
                elif below.value not in (None, {}, []):
                    self._file.unknown(below, key, ["name"])
        self._file.take(self._places.by_place["models.items"], Entry(entry.path, entry.line, names))

    def _dataset(self, entry: Entry) -> None:
        named = self._file.named(entry, "dataset")
        named.pop("dataset.name", None)
        kind, records = named.pop("dataset.type", None), named.pop("dataset.records", None)
        public = named.pop("dataset.dataset", None)
        if records is not None and "dataset.path" in named:
            self._file.wrong(records, "a data set has a path or records", "drop one of them")
        elif records is not None:
            self._inline(records, named.get("dataset.format"))
        self._public(entry, kind, public, named)
        has_path = "dataset.path" in named or records is not None
        if kind is not None and kind.plain not in ("synthetic", "file", "public"):  # by its plugin's name
            self._file.take(self._places.by_place["dataset.format"], kind)
        elif kind is not None and kind.plain != "public" and (kind.plain == "file") != has_path:
            self._file.wrong(entry, "a path belongs to type: file" if has_path else "a file needs its path, or records")
        self._places.each(named)

    def _public(self, entry: Entry, kind: Entry | None, public: Entry | None, named: Mapping[str, Entry]) -> None:
        """``{dataset: NAME}`` is a public data set, whose type may be said."""
        if kind is not None and kind.plain == "public" and public is None and "dataset.public" not in named:
            self._file.wrong(entry, "a public data set needs its name", "add dataset: NAME")
        if public is None:
            return
        if kind is not None and kind.plain != "public":
            self._file.wrong(public, "a public data set has the type public", f"drop it, or type: {kind.plain}")
        elif "dataset.public" in named:
            self._file.wrong(public, f"the same as {self._file.where(named['dataset.public'])}", "keep one of them")
        else:
            self._file.take(self._places.by_place["dataset.public"], public)

    def _inline(self, records: Entry, form: Entry | None) -> None:
        if isinstance(records.value, dict) and form is not None and canonical(str(form.plain)) != _POOLS:
            self._file.wrong(records, f"lists by name are for the format {_POOLS}", f"write a list, or format: {_POOLS}")
            return
        try:
            path = written(records.plain, self._file.name)
        except ValueError as error:
            self._file.wrong(records, str(error))
            return
        self._file.take(self._places.by_place["dataset.path"], Entry(records.path, records.line, str(path)))

    def _records(self, entry: Entry) -> None:
        if entry.value is False:
            self._level("summary", entry)
        elif texts(entry) not in (["jsonl"], ["True"]):
            self._file.wrong(entry, "what can be written is jsonl, or false for none")

    def _level(self, level: str, entry: Entry) -> None:
        option = self._places.by_place["artifacts.level"]
        before = self._file.given.get(option.spec)
        if before is not None and before.values != [level]:
            self._file.wrong(entry, f"raw answers follow the records, which {before.typed} leaves out")
            return
        self._file.given[option.spec] = OptionValue(option, self._file.where(entry), [level])

    def _summary(self, entry: Entry) -> None:
        if texts(entry) != ["json"]:
            hint = "leave an exporter out with disabled: [exporters:csv]"
            self._file.wrong(entry, "the summary is always written: [json]", hint)

    def _user_files(self, entry: Entry) -> None:
        """Files that an exporter renders with values of the run; their texts also know the file's variables."""
        if "artifacts.user_files" in self._places.by_place:
            self._user_file = entry  # which of the variables are secret is known behind all of the file
        else:
            why = "files of the user are for the package aiperf-hook-user-files, which is not installed"
            self._file.wrong(entry, why, "drop it")

    def _take_user_files(self, entry: Entry) -> None:
        """Variables with a secret are kept from the files, and from whatever shows the option."""
        secrets, option = self._file.secrets, self._places.by_place["artifacts.user_files"]
        for name in sorted(secrets):
            if re.search(rf"\{{\{{(?:(?!\}}\}}).)*\b{name}\b", json.dumps(entry.plain)):
                why = f"the variable {name} is a part of {secrets[name]}, a secret, and these files are for all to read"
                self._file.wrong(entry, why, "take it out of the files")
        shown = {name: value for name, value in self._variables.items() if name not in secrets}
        text = json.dumps({"files": entry.plain, "variables": shown})
        self._file.given[option.spec] = OptionValue(option, self._file.where(entry), [text])

    def _take_plot(self, entry: Entry) -> None:
        """Pictures behind the run, which the section implies; their text has each value in its line of the file."""
        if "plot" not in self._places.by_place:
            why = "pictures behind a run are for the package aiperf-exporter-auto-plot, which is not installed"
            self._file.wrong(entry, why, "drop it, and run aiperf plot DIR afterwards")
            return
        pictures, drawn = self._places.by_place["plot"], self._places.by_place["artifacts.auto_plot"]
        self._file.given[pictures.spec] = OptionValue(pictures, self._file.where(entry), [flow(entry)])
        if drawn.spec not in self._file.given:
            self._file.mark(drawn, entry)

    def _gpu_telemetry(self, entry: Entry) -> None:
        """The reference has a key for each kind of item; other keys are options by their place."""
        named = self._file.named(entry, "gpu_telemetry") if isinstance(entry.value, dict) else {"gpu_telemetry.urls": entry}
        items: list[Entry] = []
        asked = False
        for place, below in named.items():
            key = place.partition(".")[2]
            if key in ("url", "urls", "items", "metrics_file"):
                items += [Entry(below.path, below.line, text) for text in texts(below)]
            elif key in ("collector", "mode"):
                self._word(below, _COLLECTORS if key == "collector" else _MODES)
                items += [replace(below, value="dashboard")] if below.value == "realtime_dashboard" else []
                items += [below] if below.value in ("pynvml", "amdsmi") else []
            else:
                self._places.walk(place, below)
                continue
            asked = True
        if asked:
            self._file.take(self._places.by_place[_GPU_ITEMS], replace(entry, value=items))

    def _word(self, entry: Entry, words: tuple[str, ...]) -> None:
        if entry.value not in words:
            self._file.wrong(entry, f"{entry.plain!r} is not one of {', '.join(words)}")


def pins(entry: Entry) -> list[str]:
    """``category:name=distribution`` each, of a mapping or a list of them."""
    return [f"{key}={value}" for key, value in entry.plain.items()] if isinstance(entry.value, dict) else texts(entry)


__all__ = ["TOP", "Reading", "pins"]
