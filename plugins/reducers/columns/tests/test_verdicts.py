"""Verdicts of a run: every one judges, a broken one harms no other, and without any there is no verdict."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.options import EncodedOptions, Options
from aiperf.sdk.summary import Summary
from aiperf.sdk.verdict import Evidence, Finding, FindingLevel, Verdict
from aiperf_reducer_columns.report.report import report
from aiperf_reducer_columns.report.verdicts import concluded
from aiperf_testing.journals import Recording, event
from aiperf_testing.plans import sample_ref
from aiperf_testing.summaries import sample_summary
from aiperf_testing.verdicts import sample_evidence
from msgspec.structs import replace

MS = 10**6


class FewOptions(Options):
    few: int = 3


class Few(Verdict[FewOptions]):
    def judge(self, evidence: Evidence) -> Finding | None:
        valid = evidence.summary.valid
        if valid >= (3 if self.options is None else self.options.few):
            return None
        return Finding("few", FindingLevel.SUSPECT, f"{valid} are few", 0.5, {"valid": np.float64(valid)})


class Talks(Verdict[None]):
    def judge(self, evidence: Evidence) -> list[Finding]:
        return [Finding("hint", FindingLevel.ADVICE, "use more"), Finding("note", FindingLevel.NOTE, "from far away")]


class Silent(Verdict[None]):
    def judge(self, evidence: Evidence) -> list[Finding]:
        return []


class Fails(Verdict[None]):
    def judge(self, evidence: Evidence) -> Iterator[Finding]:
        yield Finding("early", FindingLevel.NOTE, "seen before")
        raise LookupError("lost")


class Wrong(Verdict[None]):
    given: Any = None

    def judge(self, evidence: Evidence) -> Any:
        return self.given


class Word(Wrong):
    given = "suspect"


class Number(Wrong):
    given = 7


class Level(Wrong):
    given = (Finding("kind", "awful", "It is awful."),)  # type: ignore[arg-type]


class Kind(Wrong):
    given = (Finding("Two words", FindingLevel.NOTE, "It is so."),)


class Sure(Wrong):
    given = (Finding("kind", FindingLevel.NOTE, "It is so.", confidence=2.0),)


class Texts(Wrong):
    given = (Finding("kind", FindingLevel.NOTE, "It is so.", numbers={"n": "many"}),)  # type: ignore[dict-item]


def ref(plugin: type) -> PluginRef:
    return sample_ref("verdicts", f"{__name__}:{plugin.__name__}")


def judged(directory: Path, *verdicts: PluginRef, **changes: Any) -> Summary:
    made = Recording(directory, verdicts=verdicts, **changes)
    for request in (0, 1):
        made.answered(request, MS, (2 * MS, event(text="a")))
    made.flush(9 * MS)
    made.ended(requests={0: 2})
    return report(made.directory)[0]


def test_what_verdicts_find_is_in_the_summary_by_level(tmp_path: Path) -> None:
    summary = judged(tmp_path, ref(Few), ref(Silent), ref(Talks))
    measured = summary.measurement
    assert (measured.verdict, measured.scope) == ("suspect", None)
    assert (measured.reasons, measured.notes) == (("2 are few",), ("from far away",))
    assert summary.warnings == ("use more",)
    assert [(each.kind, each.level, each.plugin, each.package) for each in measured.findings] == [
        ("few", "suspect", "few", "acme 1.2"), ("hint", "advice", "talks", "acme 1.2"), ("note", "note", "talks", "acme 1.2"),
    ]  # fmt: skip
    assert (measured.findings[0].confidence, measured.findings[0].numbers) == (0.5, {"valid": 2.0})
    assert [used.name for used in summary.plugins if used.category == "verdicts"] == ["few", "silent", "talks"]
    stored = (tmp_path / "journal" / "summary.msgpack").read_bytes()
    assert msgspec.msgpack.decode(stored, type=Summary).measurement == measured


def test_a_run_to_which_no_verdict_objects_is_trustworthy(tmp_path: Path) -> None:
    measured = judged(tmp_path, ref(Silent), ref(Talks)).measurement
    assert (measured.verdict, measured.reasons) == ("trustworthy", ())


def test_without_any_verdict_there_is_none(tmp_path: Path) -> None:
    summary = judged(tmp_path)
    assert (summary.measurement.verdict, summary.measurement.reasons, summary.warnings) == ("none", (), ())
    (note,) = summary.measurement.notes
    assert note == "no verdict was made: no plugin of the category verdicts is in use; aiperf-verdict-measurement is one"


def test_a_verdict_gets_its_options(tmp_path: Path) -> None:
    options = {"verdicts:few": EncodedOptions.of(FewOptions(few=2))}
    assert judged(tmp_path, ref(Few), options=options).measurement.verdict == "trustworthy"


@pytest.mark.parametrize(
    ("plugin", "cause"),
    [
        (Fails, "LookupError: lost"),
        (Word, "TypeError: judge gave str, not Finding"),
        (Number, "TypeError: 'int' object is not iterable"),
        (Level, "ValidationError: Invalid enum value 'awful' - at `$.level`"),
        (Kind, "ValidationError: Expected `str` matching regex '^[a-z][a-z0-9_]*$' - at `$.kind`"),
        (Sure, "ValidationError: Expected `float` <= 1.0 - at `$.confidence`"),
        (Texts, "ValidationError: Expected `int | float`, got `str` - at `$.numbers[...]`"),
    ],
)
def test_a_broken_verdict_is_named_once_and_the_others_judge(tmp_path: Path, plugin: type, cause: str) -> None:
    summary = judged(tmp_path, ref(Few), ref(plugin), ref(Talks))
    name = plugin.__name__.lower()
    assert summary.warnings == ("use more", f"the plugin verdicts:{name} of acme 1.2 failed: {cause}")
    assert (summary.measurement.verdict, summary.measurement.reasons) == ("suspect", ("2 are few",))
    early = ["seen before"] if plugin is Fails else []
    assert summary.measurement.notes == (*early, "from far away")
    assert "failures" not in summary.extra, "all files are written"


@pytest.mark.parametrize(("value", "cause"), [(f"{__name__}:Gone", "Gone"), ("no_such_module:X", "no_such_module")])
def test_a_verdict_that_can_not_be_imported_is_left_out(tmp_path: Path, value: str, cause: str) -> None:
    summary = judged(tmp_path, sample_ref("verdicts", value, name="gone"), ref(Few))
    (warning,) = summary.warnings
    assert warning.startswith("the plugin verdicts:gone of acme 1.2 can't be imported: ") and cause in warning
    assert summary.measurement.reasons == ("2 are few",)


def test_where_a_verdict_failed_no_other_makes_the_run_trustworthy(tmp_path: Path) -> None:
    measured = judged(tmp_path, ref(Silent), ref(Fails)).measurement
    assert (measured.verdict, measured.reasons) == ("none", ())
    assert measured.notes == ("seen before", "no verdict was made: a verdict failed, see the warnings")


def test_a_run_that_was_cut_short_is_never_trustworthy() -> None:
    cut = replace(sample_summary(), complete=False, incomplete_reason="it was cancelled")
    wrong = Finding("kind", FindingLevel.SUSPECT, "so")
    assert concluded(cut, [], None).verdict == "partial"
    assert concluded(cut, [wrong], None).verdict == "suspect"
    assert concluded(cut, [], "none is installed").verdict == "none"
    assert concluded(sample_summary(), [], None).verdict == "trustworthy"


def test_of_a_run_without_a_good_answer_there_is_no_verdict() -> None:
    wrong = Finding("kind", FindingLevel.SUSPECT, "so")
    for found in ([], [wrong]):
        for complete in (True, False):
            made = concluded(replace(sample_summary(), valid=0, complete=complete), found, None)
            assert (made.verdict, made.reasons) == ("none", ("so",) * len(found))
            assert made.notes == ("no verdict was made: no request succeeded, and there is nothing to trust",)


@pytest.mark.parametrize(
    ("scopes", "whole"),
    [
        (("inter-chunk",), "inter-chunk"),
        (("inter-chunk", "inter-chunk"), "inter-chunk"),
        (("input token", "inter-chunk"), "input token and inter-chunk"),
        (("inter-chunk", None), None),
        ((), None),
    ],
)
def test_the_scope_of_a_run_covers_all_reasons(scopes: tuple[str | None, ...], whole: str | None) -> None:
    found = [Finding("kind", FindingLevel.SUSPECT, "so", scope=scope) for scope in scopes]
    found.append(Finding("kind", FindingLevel.ADVICE, "other", scope="all else"))
    assert concluded(sample_summary(), found, None).scope == whole


def test_sample_evidence_puts_each_change_where_it_belongs() -> None:
    found = sample_evidence(clock_steps=2, valid=7, reads=9)
    assert (found.summary.measurement.clock_steps, found.summary.valid, found.reads) == (2, 7, 9)
    with pytest.raises(TypeError):
        sample_evidence(no_such_field=1)
