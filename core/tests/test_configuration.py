"""``--config``: which package reads the file, what its values count for, and what is told where none can."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiperf.cli import main
from aiperf.errors import ConfigError, UsageError
from aiperf.registry.registry import Registry
from aiperf.sdk.configuration import Configuration, Option, OptionValue
from aiperf.sdk.descriptor import Descriptor

HERE = "configurations_of_this_test"


class Words(Configuration):
    """A word before ``=``, values behind it; ``pins``, ``disabled`` and ``fail`` are words of their own."""

    def __init__(self, path: Path) -> None:
        try:
            lines = path.read_text().splitlines()
        except OSError as error:
            raise ConfigError(f"{path} can't be read") from error
        self.lines = {line.partition("=")[0]: line.partition("=")[2].split() for line in lines}
        self.name = path.name

    def plugins(self) -> dict[str, list[str]]:
        return {key: self.lines.pop(key) for key in ("pins", "disabled") if key in self.lines}

    def values(self, options: Sequence[Option]) -> Iterator[OptionValue | UsageError]:
        known = {option.spec.field: option for option in options}
        for key, values in self.lines.items():
            if key == "fail":
                raise KeyError(key)
            if key in known:
                yield OptionValue(known[key], f"{key} ({self.name})", values)
            else:
                yield UsageError(f"{key} ({self.name}): no such word")


class Louder(Words):
    def values(self, options: Sequence[Option]) -> Iterator[OptionValue | UsageError]:
        for value in super().values(options):
            yield OptionValue(value.option, value.typed, [*value.values, "louder"]) if isinstance(value, OptionValue) else value


def reader(name: str, value: str, suffixes: list[str], **more: Any) -> Descriptor:
    return Descriptor("configurations", name, f"{HERE}:{value}", "acme", "1", capabilities={"suffixes": suffixes}, **more)


WORDS = reader("words", "Words", [".words", "*"], first_party=True)
CHAT = (Descriptor("endpoints", "chat", "os:path", "acme", "1"), Descriptor("endpoints", "chat", "os:path", "bolt", "1"))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a line with a file; gives exit code, standard error, and settings and registry of the run, None without one."""
    caught: list[Any] = []
    fake = types.ModuleType("aiperf.run.run")
    vars(fake)["profile"] = lambda *settings: caught.append(settings) or 0
    here = types.ModuleType(HERE)
    vars(here).update(Words=Words, Louder=Louder)
    monkeypatch.setitem(sys.modules, fake.__name__, fake)
    monkeypatch.setitem(sys.modules, HERE, here)
    monkeypatch.chdir(tmp_path)

    def go(line: str, text: str, *plugins: Descriptor) -> Any:
        (tmp_path / "run.words").write_text(text)
        (tmp_path / "run.other").write_text(text)
        caught.clear()
        code = main.main(["profile", *line.split()], Registry([*plugins, *CHAT[:1]]))
        return code, capsys.readouterr().err, *(caught[0] if caught else (None, None))

    return go


def test_a_value_counts_like_its_flag_and_the_command_line_wins(run: Any) -> None:
    code, err, settings, _ = run("--config run.words --concurrency 3", "models=a b\nconcurrency=5\nrequest_count=7", WORDS)
    assert (code, err) == (0, "")
    assert (settings.kernel.models, settings.kernel.concurrency, settings.kernel.request_count) == (["a", "b"], 3, 7)
    assert settings.typed["concurrency"] == "--concurrency" and settings.typed["models"] == "models (run.words)"


def test_errors_of_the_file_and_of_the_line_are_one_report(run: Any) -> None:
    code, err, settings, _ = run("--config run.words --concurrency 0 --nonsense", "models=a\nrequest_count=x\nmodle=b", WORDS)
    assert code == 2 and settings is None
    assert [line for line in err.splitlines() if line.startswith("error: ")] == [
        "error: unknown option --nonsense",
        "error: modle (run.words): no such word",
        "error: --concurrency: 0 is not allowed; must be at least 1",
        "error: request_count (run.words): 'x' is not a whole number",
    ]


def test_pins_and_disabled_plugins_of_the_file_count(run: Any) -> None:
    text = "models=a\npins=endpoints:chat=bolt\ndisabled=endpoints:chat"
    *_, registry = run("--config run.words", "models=a\npins=endpoints:chat=bolt", WORDS, CHAT[1])
    assert registry.find("endpoints", "chat").distribution == "bolt"
    *_, registry = run("--config run.words", text, WORDS, CHAT[1])
    assert registry.find("endpoints", "chat") is None
    *_, registry = run("--config run.words --plugin endpoints:chat=acme", "models=a\npins=endpoints:chat=bolt", WORDS, CHAT[1])
    assert registry.find("endpoints", "chat").distribution == "acme"


def test_a_file_without_a_reader_is_refused_with_what_to_install(run: Any) -> None:
    code, err, settings, _ = run("--config run.words", "models=a")
    assert (code, settings) == (2, None)
    assert err == "error: --config run.words: no installed package reads such a file\n  pip install aiperf-suite\n"


def test_the_suffix_chooses_the_reader_and_a_strangers_goes_first(run: Any) -> None:
    louder = reader("louder", "Louder", [".words"])
    *_, settings, _ = run("--config run.words", "models=a", WORDS, louder)
    assert settings.kernel.models == ["a", "louder"]
    *_, settings, _ = run("--config run.other", "models=a", WORDS, louder)
    assert settings.kernel.models == ["a"]
    *_, settings, _ = run("--config run.words --disable-plugin configurations:louder", "models=a", WORDS, louder)
    assert settings.kernel.models == ["a"]


def test_a_broken_reader_is_named(run: Any) -> None:
    broken = reader("words", "Words", [".words"], broken="it is old")
    code, err, *_ = run("--config run.words", "models=a", broken)
    assert code == 2 and "  configurations:words: it is old\n" in err
    code, err, *_ = run("--config run.words", "models=a", reader("gone", "Gone", [".words"]))
    assert code == 1 and err.startswith("error: the plugin configurations:gone of acme 1 can't be imported: ")
    code, err, *_ = run("--config run.words", "models=a\nfail=1", WORDS)
    assert (code, err) == (1, "error: the plugin configurations:words of acme 1 failed: KeyError: 'fail'\n")


def test_a_reader_may_refuse_the_file(run: Any) -> None:
    code, err, settings, _ = run("--config none.words", "", WORDS)
    assert (code, err, settings) == (1, "error: none.words can't be read\n", None)


def test_every_option_of_the_kernel_has_a_place_of_its_own() -> None:
    specs = Registry([]).kernel_options
    placeless = {spec.field for spec in specs if not spec.place}
    of_a_line = {"verbose", "extra_verbose", "quiet", "dry_run", "as_json", "variants", "no_resume"}
    assert placeless == of_a_line, "logging.level says it, or it is of a command line"
    places = [spec.place for spec in specs if spec.place]
    assert len(places) == len(set(places))
