"""The command line as a person meets it: help, errors, exit codes, and what reaches the run."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from aiperf import __version__, hookimpl, logs
from aiperf.cli import main
from aiperf.errors import ConfigError, ConfigErrors
from aiperf.registry.hooks import Hooks
from aiperf.registry.manifest import ManifestError, read_row
from aiperf.registry.registry import Registry
from aiperf.sdk.command import LATER, Command
from aiperf.sdk.descriptor import Descriptor, OptionSpec, PluginRef
from aiperf.sdk.options import Options, option


class Shape(Options):
    length: int = option("--isl", ge=0, default=550, help="Mean prompt length.")
    slos: list[str] = option("--goodput", "-g", default=[], help="Objectives.")

    def problems(self, typed: dict[str, str]) -> list[str]:
        return [f"{typed['length']} 13 is unlucky\ngive another"] if self.length == 13 else []


class Other(Options):
    length: int | None = option("--isl", ge=0, help="Mean prompt length.")


class Sparkle(Options):
    times: int = option("--times", "-t", default=1, ge=1, help="How often.")
    places: list[str] = option("--place", default=[], help="Where.")


class Sparkler(Command):
    arguments = "[DIR...]"

    def run(self, options: Any, words: Any) -> Any:
        print(f"{options.times} {options.places} {list(words)}")
        if words == ["refuse"]:
            raise ConfigError("refuse is no directory", "name another")
        return options.times - 1


class Rescorer(Command):
    arguments = "DIR"

    def run(self, options: Any, words: Any) -> int:
        assert self.plugin_options is not None
        found = self.plugin_options.options["datasets:synthetic"]
        print(
            f"{found.length} {self.plugin_options.given} {[one.name for one in self.plugin_options.registry.all('datasets')]}"
        )
        return 0


ISL = OptionSpec("length", ("--isl",), "Mean prompt length.", "int", metavar="INT", default="550", group="Prompt")
SLOS = OptionSpec("slos", ("--goodput", "-g"), "Objectives.", arity="many", metavar="TAG:NUMBER")
TIMES = OptionSpec("times", ("--times", "-t"), "How often.", "int", metavar="INT", default="1")
PLACES = OptionSpec("places", ("--place",), "Where.", arity="many", metavar="PLACE")


def plugin(category: str, name: str, **more: object) -> Descriptor:
    fields: dict[str, object] = {
        "value": "os:path", "distribution": "acme", "version": "1.0", "summary": "A plugin."
    } | more  # fmt: skip
    return Descriptor(category=category, name=name, **fields)  # type: ignore[arg-type]


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Any:
    here = types.ModuleType("plugins_of_this_test")
    vars(here).update(Shape=Shape, Other=Other, Sparkle=Sparkle, Sparkler=Sparkler, Rescorer=Rescorer)
    monkeypatch.setitem(sys.modules, here.__name__, here)
    return Registry(
        [
            plugin("datasets", "synthetic", options=(ISL, SLOS), options_model="plugins_of_this_test:Shape"),
            plugin("datasets", "other", options=(ISL,), options_model="plugins_of_this_test:Other"),
            plugin("endpoints", "chat", aliases=("vision",)),
            plugin("endpoints", "chat", distribution="bolt", priority=1),
            plugin("commands", "sparkle_up", summary="Sparkles.", value="plugins_of_this_test:Sparkler",
                options=(TIMES, PLACES), options_model="plugins_of_this_test:Sparkle", capabilities={"arguments": "[DIR...]"}),
            plugin("commands", "shine_at_night", summary="Shines.", value="plugins_of_this_test:Sparkler",
                options=(TIMES, PLACES), options_model="plugins_of_this_test:Sparkle",
                capabilities={"arguments": "[DIR...]", "word": "shine at-night"}),
            plugin("commands", "rescore_again", summary="Again.", value="plugins_of_this_test:Sparkler",
                options=(TIMES, PLACES), options_model="plugins_of_this_test:Sparkle",
                capabilities={"arguments": "[DIR...]", "word": "rescore again"}),
            plugin("commands", "rotten", broken="its manifest is missing"),
            plugin("commands", "rescore", value="plugins_of_this_test:Rescorer",
                capabilities={"arguments": "DIR", "options_of": ["datasets"]}),
        ],
    )  # fmt: skip


@pytest.fixture
def run(registry: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a line; gives exit code, stdout, stderr.  A run is caught as its settings."""
    caught: list[tuple[Any, Registry]] = []

    def profile(settings: Any, found: Registry) -> int:
        caught.append((settings, found))
        return 0

    fake = types.ModuleType("aiperf.run.run")
    vars(fake)["profile"] = profile
    monkeypatch.setitem(sys.modules, "aiperf.run.run", fake)
    monkeypatch.setattr(logs, "to_console", lambda level: None)  # its handler would outlive the captured stream

    def go(line: Any) -> Any:
        words = line.split() if isinstance(line, str) else line
        code = main.main(words, registry)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    vars(go)["caught"] = caught
    return go


def settings_of(run: Any, line: Any) -> Any:
    code, _, err = run(line)
    assert code == 0, err
    return run.caught[-1][0]


def test_a_word_of_a_command_is_a_command_of_its_own(run: Any) -> None:
    code, out, err = run("shine at-night here --times 2")
    assert (code, err) == (run("sparkle-up here --times 2")[0], "") and out == run("sparkle-up here --times 2")[1]
    assert run("shine at_night here --times 2") == (code, out, err)
    help_of_word = run("shine at-night --help")[1]
    assert help_of_word.startswith("Usage: aiperf shine at-night [OPTIONS] [DIR...]\n") and "--times" in help_of_word
    assert run("rescore again here --times 2")[1] == out, "a word wins over the command's own arguments"
    assert run("rescore dir --isl 7")[1].startswith("7 ")


def test_a_command_lists_its_words(run: Any) -> None:
    assert "at-night  Shines." in run("shine --help")[1] and "again  Again." in run("rescore --help")[1]
    top = run("--help")[1]
    assert "Words: at-night." in top and "Words: again." in top and "shine at-night" not in top


@pytest.mark.parametrize("word", ["init", "config initial", "config init now", "config  init", 3])
def test_a_word_that_is_not_its_plugins_name_is_refused(word: object) -> None:
    with pytest.raises(ManifestError, match="is not two words that make its name"):
        read_row({"category": "commands", "name": "config_init", "capabilities": {"word": word}})


def test_a_command_without_its_word_names_the_words(run: Any) -> None:
    assert run("shine") == (2, "", "error: aiperf shine needs a word: at-night\n  see aiperf shine --help\n")
    code, out, err = run("shine at-nigth")
    assert (code, out) == (2, "") and err.startswith("error: there is no command 'shine at-nigth'\n")
    assert "aiperf shine has the words at-night" in err and "did you mean at-night?" in err
    assert "unknown option --tims" in run("shine at-night --tims 2")[2] and "--times" in run("shine at-night --tims 2")[2]


def test_a_command_may_take_the_options_of_plugins_like_profile_does(run: Any) -> None:
    assert run("rescore dir --isl 7")[:2] == (
        0, "7 {'datasets:other': ('length',), 'datasets:synthetic': ('length',)} ['other', 'synthetic']\n"
    )  # fmt: skip
    assert run("rescore dir")[1].startswith("550 {} ")
    assert "--isl INT" in run("rescore --help")[1]
    code, _, err = run("rescore dir --isl long")
    assert (code, "--isl: 'long' is not a whole number" in err) == (2, True)
    assert run("rescore dir --isl 13") == (1, "", "error: --isl 13 is unlucky\n  give another\n")


@pytest.mark.parametrize("line", ["", "--help", "-h"])
def test_aiperf_alone_prints_help_and_names_every_usable_command(run: Any, line: Any) -> None:
    code, out, err = run(line)
    assert (code, err) == (0, "")
    assert "  profile" in out and "  plugins" in out and "  sparkle-up  Sparkles." in out and "rotten" not in out


def test_the_version_is_a_bare_number(run: Any) -> None:
    assert run("--version") == (0, f"{__version__}\n", "")


@pytest.mark.parametrize("line", ["profile --help", "profile -h", "profile --isl x --bogus -h", "plugins -h", "sparkle-up -h"])
def test_help_fits_eighty_columns_and_is_plain(run: Any, monkeypatch: pytest.MonkeyPatch, line: Any) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = run(line)
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out and "─" not in out and out.startswith("Usage: aiperf ")


def test_help_of_profile_has_every_option_once_under_its_heading(run: Any, registry: Any) -> None:
    _, out, _ = run("profile --help")
    for spec in registry.kernel_options:
        assert sum(f"  {', '.join(spec.flags)}".rstrip() in line for line in out.splitlines()) >= 1, spec.flags
    assert out.count("  --isl INT") == 1
    headings = [line[:-1] for line in out.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Endpoint", "Load", "Input", "Warmup", "Output", "Tokenizer", "Connection", "Scenario", "Prompt",
            "Synthetic",
        "Service", "Accuracy", "Repeats", "Sweeps", "Plugins", "Other"]  # fmt: skip
    assert "[default: 550]" in out and "Installed: chat." in out


def test_help_on_a_terminal_is_one_screen_for_a_first_run(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    piped = run("profile --help")[1]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    code, out, _ = run("profile --help")
    lines = out.splitlines()
    assert (code, len(lines) < 24, max(map(len, lines)) <= 80) == (0, True, True)
    assert "  -m, --model NAME" in out and "(required)" in out and "  --isl INT" in out and "Example: aiperf profile -m" in out
    assert "--header" not in out and "endpoint, load, input," in " ".join(out.split())
    assert run("profile --help all")[1] == piped and run("profile -h all --isl 3")[1] == piped
    assert "--header" in piped and "--model is required" in " ".join(piped.split())


def test_help_of_profile_ends_with_how_to_ask_for_a_part(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    piped = run("profile --help")[1]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for out, ways in ((run("profile --help")[1], "--help GROUP, --help OPTION, or --help all."),
                      (piped, "--help GROUP, or --help OPTION.")):  # fmt: skip
        end = " ".join(out.split("\n\n")[-1].split())
        assert f"{ways} Groups: endpoint, load, input, warmup, output, tokenizer," in end
    assert "Groups:" not in run("plugins --help")[1]


@pytest.mark.parametrize(
    ("line", "there", "not_there"),
    [
        ("--help load", "  --concurrency INT", "--isl"),
        ("--help=load", "  --concurrency INT", "--isl"),
        ("-h PROM", "  --isl INT", "--concurrency INT"),
        ("--help load plugins", "  --disable-plugin", "--isl"),
        ("--help isl", "  --isl INT", "--concurrency INT"),
        ("--help no-fixed-schedule", "  --fixed-schedule, --no-fixed-schedule", "--concurrency INT"),
    ],
)
def test_help_is_given_on_a_group_or_an_option(run: Any, line: str, there: str, not_there: str) -> None:
    code, out, err = run(f"profile {line}")
    assert (code, err, there in out, not_there in out) == (0, "", True, False)


def test_help_on_an_unknown_group_names_the_groups(run: Any) -> None:
    code, out, err = run("profile --help laod")
    assert (code, out) == (2, "")
    assert err.startswith("error: --help laod: there is no group and no option of that name\n  groups: endpoint, load, ")
    assert "did you mean load?" in err


def test_words_behind_the_help_of_a_short_command_are_ignored(run: Any) -> None:
    assert run("sparkle-up --help load")[1] == run("sparkle-up --help")[1]


def test_help_of_a_narrow_terminal_does_not_fail(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    assert run("profile --help")[0] == 0


def test_an_unknown_command_names_the_commands(run: Any) -> None:
    code, out, err = run("profil")
    assert (code, out) == (2, "")
    assert err.splitlines()[0] == "error: there is no command 'profil'"
    assert "commands: profile, plugins, rescore, sparkle-up" in err and "did you mean profile?" in err


def test_an_option_before_the_command_is_explained(run: Any) -> None:
    code, _, err = run("--model m profile")
    assert code == 2 and "error: unknown option --model" in err and "options follow a command" in err


def test_a_broken_command_says_why(run: Any) -> None:
    code, _, err = run("rotten")
    assert code == 1 and "acme 1.0 can't be used: its manifest is missing" in err


def test_all_errors_of_a_command_line_come_together(run: Any) -> None:
    code, out, err = run("profile --concurrency 0 --request-rate fast --isl -1 --export-level loud")
    assert (code, out) == (2, "") and run.caught == []
    assert sorted(line for line in err.splitlines() if line.startswith("error: ")) == [
        "error: --concurrency: 0 is not allowed; must be at least 1",
        "error: --export-level: 'loud' is not one of summary, records, raw",
        "error: --isl: -1 is not allowed; must be at least 0",
        "error: --request-rate: 'fast' is not a number",
    ]


def test_values_are_checked_though_the_line_cannot_be_read_whole(run: Any) -> None:
    code, _, err = run("profile --bogus --concurrency 0 --plugin endpoints:chat=nobody")
    assert code == 2 and err.count("error: ") == 3 and "--concurrency: 0 is not allowed" in err
    assert run("sparkle-up -t 0 --bogus")[2].count("error: ") == 2


def test_an_unknown_name_is_reported_beside_the_errors_of_the_line(run: Any) -> None:
    code, _, err = run("profile --endpoint-type chatt --arrival-pattern possion --concurrency abc --bogus")
    assert code == 2
    assert sorted(line for line in err.splitlines() if line.startswith("error: ")) == [
        "error: --arrival-pattern: no arrival plugin is called 'possion'",
        "error: --concurrency: 'abc' is not a whole number",
        "error: --endpoint-type: no endpoint plugin is called 'chatt'",
        "error: unknown option --bogus",
    ]


def test_all_usage_errors_come_together(run: Any) -> None:
    code, _, err = run("profile --concurency 3 --streaming true --concurrency 1 --concurrency 2 left over --plugin x")
    assert code == 2
    assert err.count("error: ") == 5 and "did you mean --concurrency?" in err and "left over: 'left', 'over'" in err


def test_a_lone_dash_is_dropped(run: Any) -> None:
    code, _, err = run(["profile", "--model", "m", "--", "5"])
    assert code == 2 and "drop it" in err


def test_an_option_that_is_near_nothing_gets_no_suggestion(run: Any) -> None:
    error = "error: unknown option --bogus\n"
    assert run("profile --bogus")[2] == f"{error}  see aiperf profile --help\n  pip install aiperf-suite\n"


def test_what_was_typed_reaches_the_run(run: Any) -> None:
    got = settings_of(run, ["profile", "-m", "a", "b", "--url", "http://h:1,http://h:2", "--num-requests", "5", "--streaming",
        "-H", "Accept: a,b", "--endpoint", "", "--request-rate-mode", "Gamma", "--random-seed", "7"])  # fmt: skip
    kernel = got.kernel
    assert (kernel.models, kernel.urls) == (["a", "b"], ["http://h:1", "http://h:2"])
    assert (kernel.request_count, kernel.streaming, kernel.headers) == (5, True, ["Accept: a,b"])
    assert (kernel.endpoint_path, kernel.arrival_pattern, kernel.random_seed) == ("", "gamma", 7)
    assert got.flag("request_count", "--request-count") == "--num-requests"
    assert got.flag("concurrency", "--concurrency") == "--concurrency"


def test_plugins_get_their_own_options_and_share_what_they_declare_alike(run: Any) -> None:
    got = settings_of(run, "profile -m m --isl 9 -g a:1 b:2")
    assert got.plugins["datasets:synthetic"].length == 9 and got.plugins["datasets:other"].length == 9
    assert got.plugins["datasets:synthetic"].slos == ["a:1", "b:2"]
    assert got.typed["datasets:synthetic.slos"] == "-g"


def test_plugins_have_their_defaults_where_nothing_was_typed(run: Any, registry: Registry) -> None:
    got = settings_of(run, "profile -m m --goodput a:1")
    assert got.plugins["datasets:synthetic"].length == 550
    assert "datasets:other" not in got.plugins, "it is not imported before a plan selects it"
    everywhere = plugin("exporters", "all", options=(ISL,), options_model="plugins_of_this_test:Other")
    assert main.main(["profile", "-m", "m"], Registry([everywhere])) == 0
    ((settings, _),) = run.caught[-1:]
    assert settings.plugins["exporters:all"].length is None, "it takes part in every run"


def test_the_command_is_kept_as_typed_without_secrets(run: Any) -> None:
    got = settings_of(run, ["profile", "-m", "my model", "--ui", "None", "--api-key", "sk-123", "-H", "X-Key: sk-123",
        "--url", "http://u:sk-123@h:1/?api_key=sk-123"])  # fmt: skip
    assert "sk-123" not in got.command
    assert got.command.startswith("aiperf profile -m 'my model' --ui None --api-key '<redacted>' -H 'X-Key:<redacted>' --url ")
    assert got.kernel.api_key == "sk-123"


def test_an_error_never_shows_a_secret(run: Any) -> None:
    for line in ("--api-key sk-123 --api-key sk-123", "--api-kye sk-123", "--api-kye=sk-123", "http://u:sk-123@h"):
        code, out, err = run(f"profile {line}")
        assert code == 2 and "sk-123" not in out + err


def test_a_pin_and_a_switch_count_before_names_are_looked_up(run: Any) -> None:
    got = settings_of(run, "profile -m m --plugin endpoints:chat=acme --disable-plugin datasets:other")
    found = run.caught[-1][1]
    assert found.ref("endpoints", "chat").distribution == "acme" and found.names("datasets") == ["synthetic"]
    assert "datasets:other" not in got.plugins


def test_an_option_of_a_plugin_that_is_switched_off_is_unknown(run: Any) -> None:
    code, _, err = run("profile -m m --disable-plugin datasets:synthetic datasets:other --isl 5")
    assert code == 2 and "unknown option --isl" in err


def test_a_bad_pin_is_reported_with_the_other_errors(run: Any) -> None:
    code, _, err = run("profile --plugin endpoints:chat=nobody --bogus")
    assert code == 2 and err.count("error: ") == 2 and "nobody does not provide it" in err


def test_a_broken_plugin_is_one_warning(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    broken = plugin("exporters", "rusty", broken="it asks for API >=9")
    assert main.main(["profile", "-m", "m"], Registry([broken])) == 0
    assert capsys.readouterr().err == "warning: plugin exporters:rusty of acme 1.0 can't be used: it asks for API >=9\n"


def test_what_is_broken_in_a_package_for_one_cause_is_one_warning(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [plugin("exporters", "a", broken="it is old"), plugin("metrics", "b", broken="it is old")]
    main.main(["profile", "-m", "m"], Registry([*rows, plugin("metrics", "b", distribution="bolt", broken="it is old")]))
    assert capsys.readouterr().err.splitlines() == [
        "warning: plugins exporters:a, metrics:b of acme 1.0 can't be used: it is old",
        "warning: plugin metrics:b of bolt 1.0 can't be used: it is old",
    ]


@pytest.mark.parametrize("category", ["exporters", "datasets"])
def test_options_that_fail_to_import_are_fatal_only_when_given(
    run: Any, capsys: pytest.CaptureFixture[str], category: str
) -> None:
    def fresh() -> Any:
        return Registry([plugin(category, "gone", options=(ISL,), options_model="no_such_module_at_all:Options")])

    assert main.main(["profile", "-m", "m"], fresh()) == 0
    # Options of a data set are imported by the runs that select it.
    assert ("no_such_module_at_all" in capsys.readouterr().err) is (category == "exporters")
    assert main.main(["profile", "-m", "m", "--isl", "5"], fresh()) == 1
    assert "no_such_module_at_all" in capsys.readouterr().err


def test_a_command_plugin_gets_options_and_words_and_gives_the_exit_code(run: Any) -> None:
    assert run("sparkle-up one two -t 3 --place=a,b") == (2, "3 ['a', 'b'] ['one', 'two']\n", "")
    assert run("sparkle_up") == (0, "1 [] []\n", "")
    assert run("sparkle-up --place a -- --x") == (0, "1 ['a'] ['--x']\n", "")


def test_a_command_plugin_reports_like_everybody(run: Any) -> None:
    code, out, err = run("sparkle-up refuse")
    assert (code, err) == (1, "error: refuse is no directory\n  name another\n") and out
    assert run("sparkle-up -t 0")[0::2] == (2, "error: -t: 0 is not allowed; must be at least 1\n")


def test_several_errors_of_a_run_are_printed_each_with_its_hints(capsys: pytest.CaptureFixture[str]) -> None:
    main.complain(ConfigErrors([ConfigError("a", "do b"), ConfigError("c")]))
    assert capsys.readouterr().err == "error: a\n  do b\nerror: c\n"


@pytest.mark.parametrize(
    ("raised", "code"), [(KeyboardInterrupt, 130), (BrokenPipeError, 1), (ConfigErrors([ConfigError("x")]), 1)]
)
def test_how_a_run_ends_is_its_exit_code(run: Any, monkeypatch: pytest.MonkeyPatch, raised: Any, code: Any) -> None:
    def profile(settings: Any, found: Any) -> None:
        raise raised

    monkeypatch.setattr(sys.modules["aiperf.run.run"], "profile", profile)
    assert run("profile -m m")[0] == code


def test_problems_of_the_environment_are_one_line_each(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    main.main(["plugins"], Registry([], problems=["the other aiperf is installed"]))
    assert capsys.readouterr().err == "warning: the other aiperf is installed\n"


def whole(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "aiperf", *words],
        env={**os.environ, "NO_COLOR": "1", **environment}, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip


def test_the_program_answers_from_outside(tmp_path: Path) -> None:
    cache = {"AIPERF_CACHE_DIR": str(tmp_path)}
    assert whole("--version", **cache).stdout == f"{__version__}\n"
    wrong = whole("profile", "--concurrency", "0", **cache)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "error: --concurrency: 0 is not allowed; must be at least 1\n"


def test_line_file_and_environment_are_wrong_together(tmp_path: Path) -> None:
    given = {"AIPERF_CACHE_DIR": str(tmp_path), "AIPERF_HTTP_IP_VERSION": "5", "AIPERF_WORKERS": "many"}
    wrong = whole("profile", "--concurrency", "0", "--config", "none.yaml", **given)
    assert wrong.returncode == 2
    errors = [line for line in wrong.stderr.splitlines() if line.startswith("error: ")]
    assert [error.split()[1] for error in errors] == ["--config", "--concurrency:", "AIPERF_HTTP_IP_VERSION", "AIPERF_WORKERS"]


def test_completion_without_its_package_says_what_to_install(run: Any) -> None:
    code, _, err = run("--show-completion bash")
    assert (code, err) == (2, "error: no installed package has shell completion\n  pip install aiperf-suite\n")


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    line = f"{sys.executable} -m aiperf profile --help | head -1"
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=False, timeout=600,
        env={**os.environ, "AIPERF_CACHE_DIR": str(tmp_path)})  # fmt: skip
    assert done.stdout.startswith("Usage: ") and done.stderr == ""


class Guide:
    """Knows a few words."""

    @hookimpl
    def aiperf_where_is(self, category: str, name: str) -> str | None:
        return "acme-plots" if (category, name) in (("commands", "plot"), ("endpoints", "parrot")) else None

    @hookimpl
    def aiperf_unknown_plugin(self, category: str, name: str) -> str | None:
        return "use drum" if (category, name) == ("endpoints", "bongo") else None

    @hookimpl
    def aiperf_unknown_option(self, flag: str) -> str | None:
        return {"--lead": "use --length", "--tines": LATER}.get(flag)

    @hookimpl
    def aiperf_unknown_command(self, name: str) -> str | None:
        return "there is profile" if name == "measure" else None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("profile --lead 5", "use --length"), ("profile --tines", LATER), ("measure", "there is profile"),
        ("profile --endpoint-type parrot --bogus", "pip install acme-plots"), ("plot a", "pip install acme-plots"),
        ("profile --endpoint-type bongo --bogus", "use drum"),
    ],
)  # fmt: skip
def test_a_guide_says_where_what_is_not_installed_is(run: Any, monkeypatch: pytest.MonkeyPatch, line: str, said: str) -> None:
    guides = Hooks()
    guides.register(PluginRef("hooks", "guide", "x:Guide", "acme", "1"), Guide)
    monkeypatch.setattr("aiperf.registry.guides._guides", lambda registry: guides)
    code, _, err = run(line)
    assert code == 2 and said in err


@pytest.mark.parametrize("line", ["plot a", "profile --rankings-passages-mean 5"])
def test_without_a_guide_the_suite_is_the_hint(run: Any, line: str) -> None:
    code, _, err = run(line)
    assert code == 2 and "pip install aiperf-suite" in err


def test_a_variable_that_nothing_reads_is_a_warning_with_the_nearest(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_HTTP_SSL_VERFY", "false")
    monkeypatch.setenv("AIPERF_SPARKLES", "3")
    code, _, err = run("profile --model m")
    assert code == 0
    assert "warning: nothing reads AIPERF_HTTP_SSL_VERFY; did you mean AIPERF_HTTP_SSL_VERIFY?\n" in err
    assert "warning: nothing reads AIPERF_SPARKLES\n" in err


@pytest.mark.parametrize(
    ("flag", "near"),
    [
        ("--endpoint-typ", "--endpoint-type"), ("--streamin", "--streaming"), ("--max-request-count", "--request-count"),
        ("--requestcount", "--request-count"), ("--concurency", "--concurrency"), ("--urll", "--url"),
        ("--rate", None), ("--warm-start", None), ("--max-request-rate", "--request-rate"), ("--minimum-concurrency", None),
    ],
)  # fmt: skip
def test_a_near_miss_means_what_was_typed(run: Any, flag: str, near: str | None) -> None:
    """Letters alone make neighbours of --rate and --private."""
    _, _, err = run(f"profile {flag} 3")
    assert f"unknown option {flag}" in err
    assert f"did you mean {near}" in err if near else "did you mean" not in err
