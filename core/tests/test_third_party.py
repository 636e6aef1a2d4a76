"""Errors of plugin code: turned into sentences that name the plugin."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from aiperf.errors import ConfigError, PluginError
from aiperf.registry.third_party import blamed, isolated, left_out, load, said_already
from aiperf.sdk.descriptor import PluginRef

REF = PluginRef("graders", "strict", "acme:Strict", "acme", "1.2")


def test_a_reference_names_category_name_package_and_version() -> None:
    assert (str(REF), REF.key, REF.package) == ("the plugin graders:strict of acme 1.2", "graders:strict", "acme 1.2")
    assert str(PluginRef("graders", "strict", "a:B", "", "")) == "the plugin graders:strict"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("no digits"), "ValueError: no digits"),
        (SystemExit(3), "SystemExit: 3"),
        (ConfigError("no digits", "add some"), "no digits; add some"),
        (FileNotFoundError(2, "No such file", "/x"), "/x: No such file"),
    ],
)
def test_an_isolated_error_is_one_sentence(error: BaseException, reason: str) -> None:
    sentences: list[str] = []
    with isolated(REF, sentences.append):
        raise error
    assert sentences == [f"the plugin graders:strict of acme 1.2 failed: {reason}"]


def test_isolation_lets_interrupts_and_named_errors_pass() -> None:
    sentences: list[str] = []
    for error in (KeyboardInterrupt(), ConfigError("refused")):
        with pytest.raises(type(error)), isolated(REF, sentences.append, passing=ConfigError):
            raise error
    assert sentences == []


def test_isolation_decorates_a_function() -> None:
    sentences: list[str] = []

    @isolated("the file", sentences.append, "can't be read")
    def read() -> int:
        raise ValueError("torn")

    assert [read(), read()] == [None, None]
    assert sentences == ["the file can't be read: ValueError: torn"] * 2


def test_blame_turns_an_exit_into_an_error_that_names_the_plugin() -> None:
    with pytest.raises(PluginError, match=r"^the plugin graders:strict of acme 1\.2 can't be used: SystemExit: 3$"), blamed(
        REF, "can't be used"
    ):
        sys.exit(3)


def test_a_plugin_that_imports_an_old_name_is_told_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "imports_the_past.py").write_text("from aiperf.hooks import hookimpl\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(PluginError) as caught:
        load(PluginRef("hooks", "old", "imports_the_past:X", "acme", "1"))
    assert caught.value.message == (
        "the plugin hooks:old of acme 1 can't be imported: No module named 'aiperf.hooks'"
        ' (docs/plugins.md, "What moved", has the table of names that moved)'
    )


@pytest.mark.parametrize(("line", "hints"), [
    ("import acme_shared_parts.dialect", ("pip install acme-shared-parts, or what else has it; acme-endpoint needs it",)),
    ("import wants_a_library.other", ()),  # its own module: nothing else would bring it
    ("from aiperf import Nonesuch", ()),
])  # fmt: skip
def test_a_missing_library_is_named_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, hints: tuple[str, ...]
) -> None:
    (tmp_path / "wants_a_library.py").write_text(f"{line}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "wants_a_library", raising=False)
    ref = PluginRef("endpoints", "x", "wants_a_library:X", "acme-endpoint", "1")
    with pytest.raises(PluginError, match=r"^the plugin endpoints:x of acme-endpoint 1 can't be imported: ") as caught:
        load(ref)
    assert caught.value.hints == hints
    with pytest.raises(PluginError) as caught:
        load(ref, "pip install acme[all]")
    assert caught.value.hints == ("pip install acme[all]",)


def test_a_package_that_can_not_be_imported_is_one_sentence() -> None:
    plugins = ("metrics", "a"), ("exporters", "a"), ("metrics", "b")
    refs = [PluginRef(category, "x", "acme:X", package, "1") for category, package in plugins]
    sentences = left_out((ref, PluginError(f"{ref} can't be imported: No module named 'y'")) for ref in refs)
    assert sentences == [
        "the plugins metrics:x, exporters:x of a 1 can't be imported: No module named 'y'; they are left out",
        "the plugin metrics:x of b 1 can't be imported: No module named 'y'; it is left out",
    ]
    assert said_already("the plugin hooks:x of a 1 can't be imported: No module named 'y'; it is left out", sentences)
    assert not said_already("the plugin hooks:x of c 1 can't be imported: No module named 'y'; it is left out", sentences)
