"""Who gets a name, and what is said about those that don't."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiperf.errors import PluginError, UsageError
from aiperf.registry.registry import Registry
from aiperf.sdk.categories import CATEGORIES, find_category, singular
from aiperf.sdk.descriptor import Descriptor, OptionSpec


def plugin(distribution: str = "aiperf-core", category: str = "endpoints", name: str = "chat", **more: object) -> Descriptor:
    ours = distribution.startswith("ours") or distribution == "aiperf-core"
    fields: dict[str, object] = {"value": "os:path", "version": "1.0", "first_party": ours, **more}
    return Descriptor(category=category, name=name, distribution=distribution, **fields)  # type: ignore[arg-type]


def registry(*candidates: Descriptor, **more: object) -> Registry:
    return Registry(candidates, kernel_options=(), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("claims", "pins", "winner", "shadowed"),
    [
        ([plugin("ours")], {}, "ours", ()),
        ([plugin("ours"), plugin("acme")], {}, "acme", ("ours 1.0",)),
        ([plugin("acme"), plugin("ours")], {}, "acme", ("ours 1.0",)),
        ([plugin("ours", priority=1), plugin("acme")], {}, "ours", ("acme 1.0",)),
        ([plugin("acme", priority=2), plugin("bolt", priority=1), plugin("ours")], {}, "acme", ("bolt 1.0", "ours 1.0")),
        ([plugin("ours"), plugin("acme")], {"endpoints:chat": "ours"}, "ours", ("acme 1.0",)),
        ([plugin("acme"), plugin("bolt")], {"endpoints:chat": "bolt"}, "bolt", ("acme 1.0",)),
        ([plugin("acme", priority=9), plugin("bolt")], {"Endpoint:CHAT": "Bolt"}, "bolt", ("acme 1.0",)),
        ([plugin("ours"), plugin("acme", broken="it is old")], {}, "ours", ()),
    ],
)
def test_a_name_goes_to_the_pin_then_priority_then_the_stranger(claims: Any, pins: Any, winner: Any, shadowed: Any) -> None:
    found = registry(*claims, pins=pins)
    assert found.ref("endpoints", "chat").distribution == winner
    assert found.descriptor("endpoints", "chat").shadows == shadowed


def test_two_strangers_at_equal_priority_are_refused_and_both_named() -> None:
    found = registry(plugin("acme"), plugin("bolt"), plugin("ours"))
    with pytest.raises(PluginError) as caught:
        found.ref("endpoints", "chat")
    assert "acme 1.0" in caught.value.message and "bolt 1.0" in caught.value.message
    assert "--plugin endpoints:chat=acme" in caught.value.message
    assert found.names("endpoints") == []


def test_a_pinned_plugin_that_is_broken_is_an_error_not_a_fallback() -> None:
    found = registry(plugin("ours"), plugin("acme", broken="it asks for API >=9"), pins={"endpoints:chat": "acme"})
    with pytest.raises(PluginError, match=r"acme 1\.0 can't be used: it asks for API >=9"):
        found.load("endpoints", "chat")


def test_a_broken_plugin_stays_listed_with_its_cause() -> None:
    found = registry(plugin("ours"), plugin("acme", broken="it is old"))
    assert [(one.distribution, one.broken) for one in found.broken] == [("acme", "it is old")]


@pytest.mark.parametrize("name", ["chat", "CHAT", "vision", "Multi-Modal", "multi_modal"])
def test_names_and_aliases_compare_without_case_and_dashes(name: Any) -> None:
    found = registry(plugin(aliases=("vision", "multi_modal")))
    assert found.ref("endpoints", name).name == "chat"


def test_an_alias_never_takes_a_name_and_follows_the_same_precedence() -> None:
    found = registry(plugin("ours", aliases=("talk",)), plugin("acme", name="say", aliases=("talk", "chat")))
    assert found.ref("endpoints", "chat").distribution == "ours"
    assert found.ref("endpoints", "talk").distribution == "acme"


def test_an_alias_that_equals_claim_belongs_to_neither() -> None:
    found = registry(plugin("acme", name="say", aliases=("talk",)), plugin("bolt", name="tell", aliases=("talk",)))
    assert found.find("endpoints", "talk") is None
    assert "both claim the alias 'talk'" in found.problems[0]


def test_an_unknown_name_says_what_is_installed_and_what_is_near() -> None:
    found = registry(plugin(), plugin(name="completions"))
    with pytest.raises(PluginError) as caught:
        found.descriptor("endpoints", "chatt")
    assert caught.value.lines() == [
        "no endpoint plugin is called 'chatt'", "  installed: chat, completions", "  did you mean 'chat'?",
    ]  # fmt: skip


def test_a_name_that_is_near_nothing_may_be_in_the_suite() -> None:
    with pytest.raises(PluginError) as caught:
        registry(plugin()).descriptor("endpoints", "zebra")
    assert caught.value.hints == ("installed: chat", "pip install aiperf-suite")


def test_a_plugin_that_is_switched_off_is_gone_and_said_to_be() -> None:
    found = registry(plugin("ours"), plugin("acme"), disabled=["endpoint:chat"])
    assert found.names("endpoints") == [] and len(found.disabled) == 2
    with pytest.raises(PluginError, match="switched off"):
        found.ref("endpoints", "chat")


@pytest.mark.parametrize("word", ["chat", "endpoints:", "nonsense:chat", "endpoints:chatt"])
def test_switching_off_what_is_not_there_is_a_usage_error(word: Any) -> None:
    with pytest.raises(UsageError):
        registry(plugin(), disabled=[word])


def test_a_wrong_pin_names_the_packages_that_provide_the_plugin() -> None:
    with pytest.raises(UsageError) as caught:
        registry(plugin("ours"), plugin("acme"), pins={"endpoints:chat": "bolt"})
    assert "provided by: ours, acme" in caught.value.lines()[1]


def test_loading_gives_the_object_and_never_imports_what_is_shadowed() -> None:
    found = registry(plugin("ours", value="no_such_module_at_all:X"), plugin("acme", value="os.path:join"))
    import os.path

    assert found.load("endpoints", "chat") is os.path.join


@pytest.mark.parametrize("value", ["no_such_module_at_all:X", "os:no_such_attribute"])
def test_a_failed_import_names_package_version_and_requirement(value: Any) -> None:
    found = registry(plugin("acme", value=value, requires=("pip install acme[chat]",)))
    with pytest.raises(PluginError) as caught:
        found.load("endpoints", "chat")
    assert "endpoints:chat of acme 1.0" in caught.value.message
    if "module" in value:
        assert caught.value.hints == ("pip install acme[chat]",)


def test_a_module_that_exits_while_imported_is_an_error_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "quits_at_import.py").write_text("raise SystemExit(3)")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(PluginError, match="SystemExit"):
        registry(plugin("acme", value="quits_at_import:X")).load("endpoints", "chat")


ISL = OptionSpec("isl", ("--isl",), "Length.", "int")


def test_equal_options_of_two_packages_are_shared() -> None:
    found = registry(
        plugin("ours", "datasets", "synthetic", options=(ISL,)),
        plugin("acme", "datasets", "random", options=(OptionSpec("length", ("--isl",), "Other words.", "int"),)),
    )
    assert [each.options[0].flags for each in found.all("datasets")] == [("--isl",)] * 2 and found.losses == ()


FILE = OptionSpec("file", ("--isl", "--acme-file"), "A file.", "path")
TEXT = OptionSpec("text", ("--isl",), "A text.")


@pytest.mark.parametrize(
    ("ours", "acme", "bolt", "owners", "sentence"),
    [
        (True, 0, None, {"ours": ("--isl",), "acme": ("--acme-file",)},
         "exporters:acme of acme 1.0 works without --isl: datasets:synthetic of ours 1.0 has it"),
        (True, 9, None, {"ours": ("--isl",), "acme": ("--acme-file",)},
         "exporters:acme of acme 1.0 works without --isl: datasets:synthetic of ours 1.0 has it"),
        (False, 1, 0, {"acme": ("--isl", "--acme-file"), "bolt": None},
         "exporters:bolt of bolt 1.0 works without --isl: exporters:acme of acme 1.0 has it"),
        (False, 0, 1, {"acme": ("--acme-file",), "bolt": ("--isl",)},
         "exporters:acme of acme 1.0 works without --isl: exporters:bolt of bolt 1.0 has it"),
        (False, 0, 0, {"acme": ("--acme-file",), "bolt": None},
         "exporters:acme of acme 1.0 works without --isl: acme 1.0 and bolt 1.0 declare it with equal priority,"
         " so nobody has it"),
    ],
)  # fmt: skip
def test_a_flag_goes_to_ours_then_to_priority_else_to_nobody(
    ours: bool, acme: int, bolt: int | None, owners: dict[str, Any], sentence: str
) -> None:
    candidates = [plugin("acme", "exporters", "acme", options=(FILE,), priority=acme)]
    candidates += [plugin("ours", "datasets", "synthetic", options=(ISL,))] if ours else []
    candidates += [plugin("bolt", "exporters", "bolt", options=(TEXT,), priority=bolt)] if bolt is not None else []
    found = registry(*candidates)
    assert found.broken == [] and sentence in found.losses
    plugins = {each.distribution: each for category in ("datasets", "exporters") for each in found.all(category)}
    assert {name: each.options[0].flags if each.options else None for name, each in plugins.items()} == owners
    assert found.choosing(pins={}, disabled=[]).losses == found.losses, "nothing is said twice"


@pytest.mark.parametrize("flag", ["-u", "--url", "--config", "-f", "--help", "--plugin", "--disable-plugin"])
def test_a_plugin_cannot_take_a_kernel_flag_declared_alike_or_not(flag: str) -> None:
    kernel = OptionSpec("urls", ("--url", "-u"), "URL.", arity="many")
    mine = OptionSpec("user", ("--user", flag), "User.")
    found = Registry([plugin("acme", options=(mine, kernel))], kernel_options=(kernel,))
    (kept,) = found.descriptor("endpoints", "chat").options
    assert kept.flags == ("--user",) and found.broken == []
    (sentence,) = found.losses
    assert sentence.startswith("endpoints:chat of acme 1.0 works without ") and flag in sentence
    assert sentence.endswith(": aiperf itself has them")


def test_a_plugin_cannot_take_a_place_in_files_that_is_anothers() -> None:
    kernel = (OptionSpec("urls", ("--url",), "URL.", arity="many", place="endpoint.urls"),)
    mine = OptionSpec("mine", ("--my-urls",), "URLs.", arity="many", place="endpoint.urls")
    found = Registry([plugin("acme", options=(mine,))], kernel_options=kernel)
    (kept,) = found.descriptor("endpoints", "chat").options
    assert (kept.flags, kept.place) == (("--my-urls",), "")
    assert found.losses == ("endpoints:chat of acme 1.0 works without endpoint.urls: aiperf itself has it",)


def test_options_of_subcommands_are_their_own() -> None:
    found = registry(plugin("ours", "datasets", "synthetic", options=(ISL,)),
        plugin("acme", "commands", "make", options=(OptionSpec("x", ("--isl",), "A path.", "path"),)))  # fmt: skip
    assert found.broken == []


@pytest.mark.parametrize("category", CATEGORIES)
def test_categories_are_found_in_singular_and_plural(category: Any) -> None:
    assert find_category(category.upper()) == category
    assert find_category(singular(category).replace(" ", "-")) == category


def test_choosing_keeps_what_was_chosen_before() -> None:
    found = registry(plugin("ours"), plugin("acme"), plugin(name="other"), disabled=["endpoints:other"])
    again = found.choosing(pins={"endpoints:chat": "ours"}, disabled=[])
    assert again.ref("endpoints", "chat").distribution == "ours" and again.names("endpoints") == ["chat"]


def test_a_late_fault_disables_the_plugin_and_is_named_once() -> None:
    found = registry(plugin("acme", value="no_such_module_at_all:X"))
    with pytest.raises(PluginError) as caught:
        found.load("endpoints", "chat")
    found.mark_broken(found.descriptor("endpoints", "chat"), caught.value.message)
    with pytest.raises(PluginError, match=r"^the endpoint plugin 'chat' of acme 1\.0 can't be used: it can't be imported: "):
        found.ref("endpoints", "chat")
    assert [one.distribution for one in found.broken] == ["acme"]


HOOKS = """
from aiperf import hookimpl
seen = []
class Good:
    @hookimpl
    def aiperf_run_ended(self, summary): seen.append(summary)
class Unknown:
    @hookimpl
    def aiperf_no_such_hook(self): pass
class Wrong:
    @hookimpl
    def aiperf_run_ended(self, summary, colour): pass
class Nothing: pass
"""


def test_bad_hooks_are_left_out_with_one_warning_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "some_hooks.py").write_text(HOOKS)
    monkeypatch.syspath_prepend(str(tmp_path))
    names = ["good", "unknown", "wrong", "nothing", "absent"]
    found = registry(*(plugin("acme", "hooks", name, value=f"some_hooks:{name.capitalize()}") for name in names))
    hooks = found.hooks()
    for name in names[1:]:
        assert sum(f"hooks:{name} of acme 1.0" in message for message in caplog.messages) == 1
    hooks.call("aiperf_run_ended", summary="the numbers")
    import some_hooks  # type: ignore[import-not-found]

    assert some_hooks.seen == ["the numbers"]
    assert found.names("hooks") == ["good"]
    assert {one.name for one in found.broken} == set(names) - {"good"}
    assert found.hooks() is hooks
