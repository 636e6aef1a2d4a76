"""The phases of a run: warmup and profiling."""

from __future__ import annotations

from difflib import get_close_matches

from aiperf.sdk.descriptor import canonical

from aiperf_configuration_yaml.entries import Entry
from aiperf_configuration_yaml.names import KINDS
from aiperf_configuration_yaml.places import Places

PHASES = ("concurrency", "poisson", "gamma", "constant", "user_centric", "fixed_schedule")
_OF_A_RATE = ("rate", "rate_ramp", "rate_series", "smoothness")


class Phases:
    """Reads the phases of a file.

    A profiling phase without a type has the one that its keys have on a command line.  A warmup inherits from the profiling
    phase where it says ``alone: false``, and else nothing.  untimed: the type of a profiling phase that leaves the recorded
    times of a trace alone.
    """

    def __init__(self, places: Places) -> None:
        self._places, self._file = places, places.file
        self.untimed: Entry | None = None

    def warmup(self, entry: Entry) -> None:
        self._phase(entry, KINDS[0])

    def profiling(self, entry: Entry) -> None:
        self._phase(entry, KINDS[1])

    def _phase(self, entry: Entry, kind: str) -> None:
        words = self._file.named(entry)
        words.pop("name", None)
        said, excluded, named = (words.pop(key, None) for key in ("kind", "exclude_from_results", "type"))
        if said is not None and said.plain != kind:
            self._file.wrong(said, f"this is the {kind}", f"kinds: {', '.join(KINDS)}")
        if excluded is not None and self._file.on(excluded) not in (None, kind == KINDS[0]):
            self._file.wrong(excluded, "the warmup is left out of the results, and nothing else is")
        alone = words.pop("alone", None) if kind == KINDS[0] else None
        inherits = alone is not None and self._file.on(alone) is False
        if kind == KINDS[0] and named is None and alone is None:
            if isinstance(entry.value, dict):
                self._file.wrong(entry, "it has no type", f"write one of {', '.join(PHASES)}")
            return
        if kind == KINDS[0] and not inherits:
            self._file.mark(self._places.by_place[f"{kind}.alone"], entry)
        if (ramp := words.get("prefill_ramp")) is not None and "prefill_concurrency" not in words and not inherits:
            self._file.warn(ramp, "there is no prefillConcurrency that could rise, so it is left out")
            del words["prefill_ramp"]
        if (switch := words.pop("fixed_schedule", None)) is not None:
            self._file.take(self._places.by_place["profiling.type (fixed_schedule)"], switch)
        word = None if named is None else canonical(str(named.plain))
        if kind == KINDS[1] and word != PHASES[5] and switch is None and "scheduling_mode" not in words:
            self.untimed = named
        if word is not None and named is not None and not self._typed(entry, kind, word, named, words, inherits=inherits):
            return
        for key, below in words.items():
            special = f"{kind}.{key} ({word})"
            if isinstance(below.value, dict) and f"{kind}.{key}.duration" in self._places.by_place:
                self._curve(f"{kind}.{key}.duration", below)
            else:
                self._places.walk(special if special in self._places.by_place else f"{kind}.{key}", below)

    def _typed(self, entry: Entry, kind: str, word: str, named: Entry, words: dict[str, Entry], *, inherits: bool) -> bool:
        """Whether the phase's type can be had; what it implies is set."""
        paced = word not in ("concurrency", "user_centric", "fixed_schedule")
        for key in () if paced else _OF_A_RATE:
            if key in words and (key, word) != ("rate", "user_centric"):
                why = f"a phase of type {word} has none"
                self._file.wrong(words.pop(key), why, f"types with a rate: {', '.join(PHASES[1:4])}")
        if paced:
            if close := get_close_matches(word, PHASES, 1, 0.8) if word not in PHASES else []:
                self._file.wrong(named, f"there is no type {word}", f"did you mean {close[0]}?")
                return False
            self._file.take(self._places.by_place[f"{kind}.type"], named)
            if not inherits and "rate" not in words and "rate_series" not in words:
                self._file.wrong(entry, f"a phase of type {word} needs its rate", "add rate: 10, or write type: concurrency")
        elif word == "fixed_schedule":
            self._file.mark(self._places.by_place[f"{kind}.type (fixed_schedule)"], named)
        elif word == "concurrency" and "concurrency" not in words and not inherits:
            words["concurrency"] = Entry(f"{entry.path}.concurrency", entry.line, 1)
        return True

    def _curve(self, place: str, entry: Entry) -> None:
        """A ramp's duration, and its curve, which is the same for all ramps of a run."""
        for key, below in self._file.named(entry).items():
            if key == "duration":
                self._places.walk(place, below)
            elif key != "strategy":
                self._file.unknown(below, key, ["duration", "strategy"])
            else:
                curve = self._places.by_place["profiling.ramp"]
                before = self._file.given.get(curve.spec)
                if before is None:
                    self._file.take(curve, below)
                elif before.values != [str(below.value)]:
                    self._file.wrong(below, f"all ramps of a run rise alike, and {before.typed} says {before.values[0]}")
