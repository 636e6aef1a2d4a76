"""Files of the user: what they may be, what is filled in, and what is refused before a run."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from aiperf import ConfigError, Target
from aiperf.parts.tools import specs, validate
from aiperf_hook_user_files import UserFiles
from aiperf_hook_user_files.contract import UserFilesContract
from aiperf_hook_user_files.options import UserFilesOptions


class TestItKeepsTheContract(UserFilesContract):
    pass


def hooks(files: Any, **variables: Any) -> UserFiles:
    text = json.dumps({"files": files, "variables": variables})
    options, errors = validate(UserFilesOptions, specs(UserFilesOptions), {"user_files": text}, {"user_files": "--user-files"})
    assert errors == [], [error.lines() for error in errors]
    made = UserFiles()
    made.options = options
    return made


def plan(folder: Path) -> Any:
    target = SimpleNamespace(models=("m", "n"), urls=("http://h:1",))
    made = SimpleNamespace(output=SimpleNamespace(artifacts=str(folder), private=True), target=target)
    made.public = lambda: made
    return made


def written(folder: Path, files: Any, **variables: Any) -> UserFiles:
    made = hooks(files, **variables)
    made.aiperf_plan_validated(plan(folder))
    made.aiperf_run_configured(plan(folder), None)  # type: ignore[arg-type]
    return made


def test_files_of_each_format_are_filled_in(tmp_path: Path) -> None:
    made = written(tmp_path / "job", [
        {"path": "a.json", "content": {"gpus": "{{ gpus * 2 }}", "model": "{{ model }}", "at": ["{{ endpoint_url }}"]}},
        {"path": "deep/b.yaml", "content": {"run": "{{ job_name }}", "of": "{{ namespace }}", "plain": 1}},
        {"path": "c.md", "format": "text", "content": "# {{ job_name }}\n\n{{ gpus }} in {{ artifact_dir }} at {{ epoch }}\n"},
    ], gpus=4)  # fmt: skip
    folder = tmp_path / "job"
    assert json.loads((folder / "a.json").read_text()) == {"gpus": 8, "model": "m", "at": ["http://h:1"]}
    assert yaml.safe_load((folder / "deep" / "b.yaml").read_text()) == {"run": "job", "of": "", "plain": 1}
    text = (folder / "c.md").read_text()
    assert text.startswith(f"# job\n\n4 in {folder} at 1") and text.endswith("\n")
    assert (folder / "c.md").stat().st_mode & 0o777 == 0o600
    listed = made.aiperf_export(None, Target(folder))  # type: ignore[arg-type]
    assert [artifact.path.name for artifact in listed] == ["a.json", "b.yaml", "c.md"]


def test_without_the_option_nothing_is_written(tmp_path: Path) -> None:
    made = UserFiles()
    made.aiperf_plan_validated(plan(tmp_path))
    made.aiperf_run_configured(plan(tmp_path), None)  # type: ignore[arg-type]
    assert made.aiperf_export(None, Target(tmp_path)) == [] and [*tmp_path.iterdir()] == []  # type: ignore[arg-type]


@pytest.mark.parametrize(("file", "words"), [
    ({"path": "../a", "content": "x"}, "must lead into the artifact directory"),
    ({"path": "/a", "content": "x"}, "must lead into"),
    ({"path": "", "content": "x"}, "must lead into"), ({"path": "journal/x", "content": "x"}, "belongs to the run's own files"),
    ({"path": "profile_export.jsonl", "content": "x"}, "belongs to the run's own files"),
    ({"path": "a"}, "missing required field"),
    ({"path": "a", "content": "x", "format": "xml"}, "there is no format 'xml'; formats are json, yaml, text"),
    ({"path": "a", "content": {"b": 1}, "format": "text"}, "the content of a text is a text"),
    ({"path": "a", "content": "x", "mode": 1}, "unknown field `mode`"),
])  # fmt: skip
def test_a_file_that_can_not_be_is_refused(file: dict[str, Any], words: str) -> None:
    values = {"user_files": json.dumps([file])}
    _, errors = validate(UserFilesOptions, specs(UserFilesOptions), values, {"user_files": "--user-files"})
    assert words in " ".join(error.message for error in errors)


def test_two_files_of_one_path_are_refused() -> None:
    values = {"user_files": json.dumps([{"path": "a", "content": "x"}] * 2)}
    _, errors = validate(UserFilesOptions, specs(UserFilesOptions), values, {})
    assert "stands there twice" in errors[0].message


@pytest.mark.parametrize("content", ["{{ nothing }}", "{% for x in y %}{% endfor %}", "{{ model.upper() }}", "{{ 1 / 0 }}"])
def test_what_can_not_be_filled_in_is_refused_with_the_plan(tmp_path: Path, content: str) -> None:
    with pytest.raises(ConfigError, match=r"--user-files: a\.txt: "):
        hooks([{"path": "a.txt", "content": content}]).aiperf_plan_validated(plan(tmp_path))


def test_a_link_on_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run" / "out").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="leads out of"):
        written(tmp_path / "run", [{"path": "out/a.txt", "content": "x"}])
    assert [*(tmp_path / "elsewhere").iterdir()] == []
