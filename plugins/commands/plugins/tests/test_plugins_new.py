"""``aiperf plugins new``: which template is meant, which names can be had, and what is said when it can't be done."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest
from aiperf.cli import main
from aiperf.registry.registry import Registry
from aiperf.sdk.descriptor import Descriptor

COMMAND = Registry.discover().descriptor("commands", "plugins")
OURS = Descriptor("endpoints", "chat", "os:path", "aiperf-endpoint-chat", "1.0", first_party=True)


class Templates(types.ModuleType):
    """Stands in for the templates' own package; *trouble* is what making a package raises."""

    trouble: Exception | None = None

    def __init__(self, root: Path) -> None:
        super().__init__("aiperf_templates")
        self.root = root

    def folders(self) -> dict[str, Path]:
        return {path.name: path for path in self.root.iterdir()}

    def make(self, template: str, name: str, output: Path) -> None:
        if self.trouble is not None:
            raise self.trouble
        (output / name.lower().replace("-", "_")).mkdir(parents=True)


@pytest.fixture
def templates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Templates:
    for name in ("endpoint", "metric", "hooks"):
        (tmp_path / "templates" / name).mkdir(parents=True)
    (tmp_path / "templates" / "endpoint" / "code.py").write_text("from aiperf import Turn\n")
    made = Templates(tmp_path / "templates")
    monkeypatch.setitem(sys.modules, "aiperf_templates", made)
    return made


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)

    def go(*words: str) -> Any:
        code = main.main(["plugins", "new", *words], Registry([OURS, COMMAND], kernel_options=()))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return go


@pytest.mark.parametrize(
    ("words", "path", "distribution"),
    [
        (("endpoint", "my-dialect"), "my_dialect", "aiperf-endpoint-my-dialect"),
        (("ENDPOINTS", "my_dialect"), "my_dialect", "aiperf-endpoint-my-dialect"),
        (("hook", "watch"), "watch", "aiperf-hooks-watch"),
        (("metrics", "Wait2", "--output", "deep/below"), "deep/below/wait2", "aiperf-metric-wait2"),
    ],
)
def test_a_category_has_its_template(
    templates: Templates, ask: Any, tmp_path: Path, words: tuple[str, ...], path: str, distribution: str
) -> None:
    code, out, err = ask(*words)
    assert (code, err) == (0, "")
    assert (tmp_path / path).is_dir()
    assert f"pip install -e {path}\n" in out and f"aiperf plugins validate {distribution}" in out


def test_programs_get_json(templates: Templates, ask: Any) -> None:
    code, out, _ = ask("metric", "wait", "--json")
    assert code == 0
    assert '"path": "wait"' in out and '"distribution": "aiperf-metric-wait"' in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "aiperf plugins new takes CATEGORY NAME"),
        (("endpoint",), "aiperf plugins new takes CATEGORY NAME"),
        (("endpont", "x"), "did you mean endpoint?"),
        (("grader", "x"), "there is no template for graders"),
        (("endpoint", "two words"), "a plugin can't be called 'two words'"),
        (("endpoint", "3d"), "a plugin can't be called '3d'"),
        (("endpoint", "../up"), "a plugin can't be called '../up'"),
        (("endpoint", "chat"), "the endpoint plugin 'chat' is aiperf-endpoint-chat 1.0's"),
        (("endpoint", "turn"), "a class called Turn"),
        (("endpoint", "none"), "a class called None"),
    ],
)
def test_a_bad_category_or_name_is_a_usage_error(templates: Templates, ask: Any, words: tuple[str, ...], sentence: str) -> None:
    code, out, err = ask(*words)
    assert (code, out) == (2, "") and sentence in err


def test_an_existing_directory_is_left_alone(templates: Templates, ask: Any, tmp_path: Path) -> None:
    (tmp_path / "wait").mkdir()
    code, _, err = ask("metric", "wait")
    assert code == 1 and "wait is there already" in err
    assert list((tmp_path / "wait").iterdir()) == []


@pytest.mark.parametrize(
    ("trouble", "sentence"),
    [
        (ModuleNotFoundError("No module named 'cookiecutter'"), "pip install aiperf-templates"),
        (PermissionError(13, "Permission denied", "deep"), "deep can't be written: Permission denied"),
        (ValueError("bad"), "the template 'metric' can't be used: ValueError: bad"),
    ],
)
def test_what_goes_wrong_gets_a_sentence(templates: Templates, ask: Any, trouble: Exception, sentence: str) -> None:
    templates.trouble = trouble
    code, _, err = ask("metric", "wait")
    assert code == 1 and sentence in err and "Traceback" not in err


def test_without_templates_it_says_what_to_install(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiperf_templates", None)
    code, _, err = ask("endpoint", "x")
    assert code == 1 and "not installed" in err and "pip install aiperf-templates" in err


def test_output_belongs_to_new(capsys: pytest.CaptureFixture[str]) -> None:
    code = main.main(["plugins", "endpoints", "--output", "x"], Registry([OURS, COMMAND], kernel_options=()))
    assert code == 2 and "--output says where a new package goes" in capsys.readouterr().err
