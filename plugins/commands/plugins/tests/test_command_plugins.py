"""``aiperf plugins``: listings, checks, the hook reference, and writing manifests."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from aiperf import hookimpl
from aiperf.cli import main
from aiperf.registry import manifest
from aiperf.registry.registry import Registry
from aiperf.sdk import hooks
from aiperf.sdk.categories import CATEGORIES
from aiperf.sdk.descriptor import Descriptor, OptionSpec
from aiperf.sdk.endpoint import Capabilities, Endpoint
from aiperf.sdk.options import Options, option
from aiperf_command_plugins import contracts, generate, readme_page, sdk_page

COMMAND = Registry.discover().descriptor("commands", "plugins")


class Tune(Options):
    depth: int = option("--depth", default=3, ge=0, group="Tuning", help="How deep: really.")


class Chat(Endpoint):
    capabilities = Capabilities(path="/chat", streaming=True)


DEPTH = OptionSpec("depth", ("--depth",), "How deep: really.", "int", metavar="INT", default="3", group="Tuning")


def endpoint(name: str = "chat", **more: object) -> Descriptor:
    fields: dict[str, object] = {
        "value": "tested_plugins:Chat", "distribution": "acme-chat", "version": "1.2", "summary": "Chats.",
        "capabilities": {"path": "/chat", "streaming": True}, "options": (DEPTH,), "options_model": "tested_plugins:Tune",
        "api": ">=1,<2",
    } | more  # fmt: skip
    return Descriptor(category="endpoints", name=name, **fields)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def tested_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    here = types.ModuleType("tested_plugins")
    vars(here).update(Chat=Chat, Tune=Tune, Watch=Watch)
    monkeypatch.setitem(sys.modules, here.__name__, here)


@pytest.fixture(autouse=True)
def no_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is made up here no other process could import: its manifest is all that is checked."""
    monkeypatch.setattr(contracts, "available", lambda: False)


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Any:
    def go(line: Any, *plugins: Any) -> Any:
        installed = [*(plugins or [endpoint(aliases=("talk",))]), COMMAND]
        code = main.main(["plugins", *line.split()], Registry(installed, kernel_options=()))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return go


def test_packages_are_listed_with_what_is_shadowed_and_broken(ask: Any) -> None:
    ours = endpoint(distribution="ours", first_party=True)
    code, out, _ = ask("", endpoint(), ours, endpoint("old", broken="it asks for API >=9"))
    assert code == 0 and "acme-chat 1.2" in out
    assert "Shadowed:" in out and "acme-chat 1.2 over ours 1.2" in out and "it asks for API >=9" in out


def test_json_of_packages_has_what_is_shadowed(ask: Any) -> None:
    plain = json.loads(ask("--json", endpoint(), endpoint(distribution="ours", first_party=True))[1])
    assert plain["shadowed"] == [{"category": "endpoints", "name": "chat", "by": "acme-chat 1.2", "packages": ["ours 1.2"]}]


def test_all_lists_every_category(ask: Any) -> None:
    code, out, _ = ask("--all")
    assert code == 0 and [line.split()[0] for line in out.splitlines()] == list(CATEGORIES)


@pytest.mark.parametrize("line", ["endpoint", "endpoints", "ENDPOINTS", "--category endpoint"])
def test_a_category_lists_its_plugins(ask: Any, line: Any) -> None:
    code, out, _ = ask(line)
    assert code == 0 and out.startswith("endpoints: ") and "  chat  Chats." in out


@pytest.mark.parametrize("line", ["endpoint chat", "endpoints Talk", "--category endpoint --name chat", "endpoint --name chat"])
def test_one_plugin_is_explained(ask: Any, line: Any) -> None:
    code, out, _ = ask(line)
    assert code == 0
    for piece in ("acme-chat 1.2", "tested_plugins:Chat", ">=1,<2", "Priority", "talk", "path", "/chat", "--depth"):
        assert piece in out


def test_a_broken_plugin_is_explained_too(ask: Any) -> None:
    code, out, _ = ask("endpoint old", endpoint("old", broken="it asks for API >=9"))
    assert code == 0 and "it asks for API >=9" in out


def test_an_unknown_category_is_a_usage_error(ask: Any) -> None:
    code, out, err = ask("endpont")
    assert (code, out) == (2, "") and "there is no plugin category 'endpont'" in err
    assert "categories: endpoints" in err and "did you mean endpoint?" in err


def test_an_unknown_name_is_an_error_with_what_is_near(ask: Any) -> None:
    code, out, err = ask("endpoint chatt")
    assert (code, out) == (2, "") and "did you mean 'chat'?" in err


@pytest.mark.parametrize("line", ["--json", "--all --json", "endpoint --json", "endpoint chat --json", "validate --json",
    "hooks --json"])  # fmt: skip
def test_every_form_has_json(ask: Any, line: Any) -> None:
    code, out, _ = ask(line)
    assert code == 0 and json.loads(out)


def test_json_of_one_plugin_has_everything(ask: Any) -> None:
    plain = json.loads(ask("endpoint chat --json")[1])
    assert plain["distribution"] == "acme-chat" and plain["capabilities"] == {"path": "/chat", "streaming": True}
    assert plain["options"] == [{"flags": ["--depth"], "help": "How deep: really.", "default": "3"}]
    assert plain["priority"] == 0 and plain["shadows"] == [] and plain["broken"] is None and plain["api"] == ">=1,<2"


@pytest.mark.parametrize(
    ("line", "checked"),
    [("--validate", "2 plugins"), ("-v", "2 plugins"), ("validate", "2 plugins"), ("validate acme-chat", "1 plugin")],
)
def test_what_its_manifest_says_is_no_fault(ask: Any, line: str, checked: str) -> None:
    code, out, err = ask(line)
    *ended, note = err.splitlines()
    assert (code, out, note) == (0, f"{checked} checked, no fault\n", f"aiperf: {contracts.PYTEST_MISSING}")
    assert sorted(each.partition(" ")[2] for each in ended) == ([
        "acme-chat 1.2: 1 plugin, no fault", "aiperf-command-plugins 0.1.0: 1 plugin, no fault",
    ] if checked == "2 plugins" else []), "a line for each package, unless there is one"  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        ({"broken": "it asks for API >=9"}, "it asks for API >=9"),
        ({"summary": ""}, "has no summary"),
        ({"value": "no_such_module_at_all:X"}, "No module named 'no_such_module_at_all'"),
        ({"value": "tested_plugins:Tune"}, "is not a subclass of aiperf.Endpoint"),
        ({"capabilities": {"path": "/chat"}}, "its capability streaming is True, its manifest says False"),
        ({"options": ()}, "are not those of tested_plugins:Tune (--depth); run aiperf plugins manifest"),
        ({"options_model": None}, "has options but no options_model"),
        ({"options_model": "tested_plugins:Absent"}, "Absent"),
    ],
)
def test_each_fault_is_one_line_and_the_exit_code_is_one(ask: Any, wrong: Any, fault: Any) -> None:
    code, out, _ = ask("--validate", endpoint(**wrong))
    lines = out.splitlines()
    assert code == 1 and fault in lines[0] and lines[0].startswith("endpoints:chat (acme-chat 1.2): ")
    assert lines[1:] == ["2 plugins checked, 1 fault"]


def test_validating_a_package_that_is_not_there_is_a_usage_error(ask: Any) -> None:
    code, _, err = ask("validate nobody")
    assert code == 2 and "installed: acme-chat, aiperf-command-plugins" in err


def test_the_hook_reference_has_every_hook(ask: Any) -> None:
    code, out, _ = ask("hooks")
    named = [name for name in vars(hooks) if name.startswith("aiperf_")]
    assert code == 0 and len(named) > 10
    assert [line.partition("(")[0] for line in out.splitlines() if line.startswith("aiperf_")] == named
    assert "Parent process, once" in out


PACKAGE = """# kept
schema_version: 1
api: ">=1,<2"
plugins:
  - category: endpoints   # kept too
    name: one
    summary: First.
    options_model: "{package}.options:Tune"

  # about the second
  - category: endpoints
    name: two
    summary: Second.
    capabilities: {{path: /x}}
"""
MODEL = '''
from aiperf import Options, option


class Tune(Options):
    depth: int = option("--depth", default=3, ge=0, group="Tuning", help="How deep: really.")
    where: list[str] = option("--where", default=["a", "b"], help="It's \\"there\\" — #1.", commas=False)
'''


def project(tmp_path: Path, package: Any, text: Any = PACKAGE) -> Any:
    source = tmp_path / "src" / package
    source.mkdir(parents=True)
    (source / "__init__.py").write_text("")
    (source / "options.py").write_text(MODEL)
    (source / "aiperf.yaml").write_text(text.format(package=package))
    return source / "aiperf.yaml"


@pytest.mark.parametrize("inside", ["", "src/written_{0}", "src/written_{0}/aiperf.yaml"])
def test_options_are_written_into_the_manifest_of_an_uninstalled_package(
    ask: Any, tmp_path: Path, inside: str
) -> None:
    number = len(inside)
    path = project(tmp_path, f"written_{number}")
    code, out, err = ask(f"manifest {tmp_path / inside.format(number)}")
    assert code == 0, err
    assert "2 options of" in out
    text = path.read_text()
    assert "# kept" in text and "# kept too" in text and text.index("- field: depth") < text.index("# about the second")
    rows = [manifest.read_row(plain) for plain in manifest.read(text.encode()).plugins]
    assert [spec.field for spec in rows[0].options] == ["depth", "where"] and rows[1].options == ()
    assert rows[0].options[1].help == 'It\'s "there" — #1.' and rows[0].options[1].commas is False


def test_writing_again_changes_nothing_and_follows_the_model(tmp_path: Path) -> None:
    path = project(tmp_path, "written_again")
    generate.write(path)
    once = path.read_text()
    generate.write(path)
    assert path.read_text() == once
    path.write_text(once.replace("How deep: really.", "Stale.").replace("default: '3'", "default: '4'"))
    assert path.read_text() != once
    generate.write(path)
    assert path.read_text() == once


def test_options_of_a_model_that_is_gone_are_taken_out(tmp_path: Path) -> None:
    path = project(tmp_path, "written_out")
    generate.write(path)
    lines = [line for line in path.read_text().splitlines() if "options_model" not in line]
    path.write_text("\n".join(lines) + "\n")
    generate.write(path)
    assert "options" not in path.read_text() and "# about the second" in path.read_text()


def test_options_of_a_group_are_written_as_its_name(tmp_path: Path) -> None:
    lending, borrowing = project(tmp_path, "lending"), project(tmp_path, "borrowing")
    lending.write_text('option_groups: {"lending.options:Tune": []}\n' + lending.read_text())
    own = MODEL.replace("from aiperf import Options", "from lending.options import Tune as Lent\nfrom aiperf import Options")
    (borrowing.parent / "options.py").write_text(own.replace("(Options)", "(Lent)").replace("depth", "width"))
    for path in (lending, borrowing):
        generate.write(path)
        written = path.read_text()
        generate.write(path)
        assert path.read_text() == written
    found = manifest.read(lending.read_bytes())
    assert [spec.field for spec in found.option_groups["lending.options:Tune"]] == ["depth", "where"]
    row = manifest.read_row(manifest.read(borrowing.read_bytes()).plugins[0])
    assert row.option_groups == ("lending.options:Tune",) and [spec.field for spec in row.options] == ["width"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "is not YAML"),
        (PACKAGE.replace("options:Tune", "options:Absent"), "can't be used"),
        ('schema_version: 1\napi: ">0"\nplugins: [{{category: endpoints, name: x, options_model: "{package}.options:Tune"}}]\n',
            "write the row in line 3 as a block"),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_said(ask: Any, tmp_path: Path, text: Any, message: Any) -> None:
    project(tmp_path, f"unwritable_{len(text)}", text)
    code, _, err = ask(f"manifest {tmp_path}")
    assert code == 1 and message in err


def test_a_directory_without_a_manifest_is_a_usage_error(ask: Any, tmp_path: Path) -> None:
    code, _, err = ask(f"manifest {tmp_path}")
    assert code == 2 and "holds no aiperf.yaml" in err


class Watch:
    @hookimpl
    def aiperf_teardown(self) -> None:
        pass


WATCH = Descriptor("hooks", "watch", "tested_plugins:Watch", "acme-watch", "1.0", "Watches.")


@pytest.mark.parametrize("name", ["watch", "acme-watch", "Acme_Watch"])
def test_hooks_of_one_package_are_shown(ask: Any, name: str) -> None:
    code, out, _ = ask(f"hooks {name}", endpoint(), WATCH)
    assert (code, out) == (0, "hooks:watch (acme-watch 1.0): Watches.\n  aiperf_teardown\n")


def test_hooks_of_an_unknown_package_are_a_usage_error(ask: Any) -> None:
    code, out, err = ask("hooks wacht", endpoint(), WATCH)
    assert (code, out) == (2, "") and "no hook plugin is called 'wacht'" in err
    assert "did you mean 'watch'?" in err


def test_the_page_of_the_sdk_prints_an_alias_as_its_source_does():
    page = "".join(sdk_page.pages().values())
    assert "## `Floats`\n\n```python\nFloats: TypeAlias = NDArray[np.float64]\n```" in page
    assert "```python\nclass Any\n" not in page


MANIFEST = """\
schema_version: 1
api: ">=1,<2"
plugins:
  - category: endpoints
    name: babble
    summary: Babbles.
    aliases: [prattle]
    capabilities: {path: /babble, streaming: true}
    docs: {example: "--endpoint-type babble", variables: {BABBLE_SPEED: ["3", "How fast."]}}
    option_groups: ["acme.options:CommonOptions"]
    options:
      - field: depth
        flags: [--depth]
        help: How deep.
        metavar: INT
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "src" / "acme_babble").mkdir(parents=True)
    (tmp_path / "src" / "acme_babble" / "aiperf.yaml").write_text(MANIFEST)
    (tmp_path / "README.md").write_text("# acme-babble\n\nBabbles.\n")
    return tmp_path


def test_a_readme_gets_what_the_manifest_says(ask, package):
    code, out, _ = ask(f"readme {package}")
    text = (package / "README.md").read_text()
    assert (code, out) == (0, f"{package / 'README.md'}: written\n")
    assert text.startswith(f"# acme-babble\n\nBabbles.\n\n{readme_page.BEGIN}\n\n## Endpoint type `babble`\n")
    assert "| `babble` | `/babble` | yes |" in text and "Also called `prattle`." in text
    assert "| `--depth` | INT |  | How deep. | `plugins.endpoints:babble.depth` |" in text
    assert "Also the options of `acme.options:CommonOptions`." in text
    assert "| `BABBLE_SPEED` | 3 | How fast. |" in text
    assert ask(f"readme {package}")[1] == f"{package / 'README.md'}: up to date\n"


def test_a_readme_keeps_what_a_person_wrote(ask, package):
    ask(f"readme {package}")
    path = package / "README.md"
    path.write_text(path.read_text() + "\nBelow.\n")
    (package / "src" / "acme_babble" / "aiperf.yaml").write_text('schema_version: 1\napi: ">=1,<2"\nplugins: []\n')
    ask(f"readme {package}")
    assert path.read_text() == "# acme-babble\n\nBabbles.\n\nBelow.\n"


def test_a_readme_with_half_a_section_is_refused(ask, package):
    (package / "README.md").write_text(f"# acme-babble\n{readme_page.BEGIN}\n")
    code, _, err = ask(f"readme {package}")
    assert code == 2 and "the marks of the generated section are not one pair" in err


def test_a_directory_without_a_readme_is_refused(ask, tmp_path):
    code, _, err = ask(f"readme {tmp_path}")
    assert code == 2 and f"{tmp_path} has no README.md" in err


def test_the_page_of_kernel_options_has_none_of_plugins(ask):
    kernel, everything = ask("options kernel --markdown", endpoint())[1], ask("options --markdown", endpoint())[1]
    assert "`--depth`" in everything and "`--depth`" not in kernel
    assert "--depth" in ask("options", endpoint())[1] and "--depth" not in ask("options kernel", endpoint())[1]
    assert list(json.loads(ask("options kernel --json", endpoint())[1])["properties"]) == ["kernel"]


@pytest.mark.parametrize("word", ["options", "variables"])
def test_options_of_an_unknown_owner_are_refused(ask, word):
    code, _, err = ask(f"{word} colour")
    assert code == 2 and "left over: 'colour'" in err and f"aiperf plugins {word} kernel" in err


def test_pages_of_the_sdk_that_cannot_be_written_are_named(ask, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = ask(f"sdk --markdown --output {tmp_path / 'file'}")
    assert code == 1 and f"{tmp_path / 'file' / 'README.md'} can't be written" in err
