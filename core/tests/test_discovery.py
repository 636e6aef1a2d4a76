"""Finding packages as people install them: in a directory, editable, in a zip; and remembering them."""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from aiperf.registry import discovery, manifest
from aiperf.registry.registry import Registry
from aiperf.sdk.descriptor import OptionSpec

MANIFEST = """schema_version: 1
api: ">=1,<2"
plugins:
  - category: exporters
    name: {name}
    summary: Writes things.
    aliases: [Other-Name]
    priority: 3
    capabilities: {{level: raw}}
"""


def files(package: str, name: str, *, manifest: str | None = None, points: str | None = None) -> dict[str, str]:
    """What a wheel of a package that exports as *name* unpacks to."""
    distribution = package.replace("_", "-")
    points = points if points is not None else f"[aiperf.exporters]\n{name} = {package}:Exporter\n"
    made = {
        f"{package}/__init__.py": "raise RuntimeError('discovery must not import this')",
        f"{package}-2.1.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 2.1\n",
        f"{package}-2.1.dist-info/entry_points.txt": points,
        f"{package}-2.1.dist-info/RECORD": "",
    }
    text = MANIFEST.format(name=name) if manifest is None else manifest
    return made | ({f"{package}/aiperf.yaml": text} if text else {})


def unpack(where: Path, made: dict[str, str]) -> None:
    for path, text in made.items():
        (where / path).parent.mkdir(parents=True, exist_ok=True)
        (where / path).write_text(text)


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A cache of the test's own."""
    where = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("AIPERF_CACHE_DIR", str(where))
    monkeypatch.delenv("AIPERF_DISABLE_PLUGINS", raising=False)
    return where


def one(registry: Registry, distribution: str) -> Any:
    known = [each for category in registry.categories() for each in registry.all(category)] + registry.broken
    return next(each for each in known if each.distribution == distribution)


def check(registry: Registry, package: str, name: str) -> None:
    found = one(registry, package.replace("_", "-"))
    assert found.broken is None
    assert (found.category, found.name, found.version) == ("exporters", name, "2.1")
    assert (found.summary, found.aliases, found.priority) == ("Writes things.", ("other_name",), 3)
    assert found.capabilities == {"level": "raw"} and found.api == ">=1,<2" and not found.first_party
    assert package not in sys.modules


def test_a_wheel_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack(tmp_path, files("fake_wheel", "wheeled"))
    monkeypatch.syspath_prepend(str(tmp_path))
    check(Registry.discover(cache=False), "fake_wheel", "wheeled")


def test_an_editable_install_is_found_whose_file_list_has_no_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, site = tmp_path / "src", tmp_path / "site"
    for path, text in files("fake_editable", "edited").items():
        unpack(site if "dist-info" in path else source, {path: text})
    unpack(site, {"fake_editable.pth": str(source)})
    for entry in (source, site):
        monkeypatch.syspath_prepend(str(entry))
    check(Registry.discover(cache=False), "fake_editable", "edited")


def test_a_zip_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "bundle.zip"
    with zipfile.ZipFile(archive, "w") as bundle:
        for path, text in files("fake_zipped", "zipped").items():
            bundle.writestr(path, text)
    monkeypatch.syspath_prepend(str(archive))
    check(Registry.discover(cache=False), "fake_zipped", "zipped")
    check(Registry.discover(), "fake_zipped", "zipped")
    check(Registry.discover(), "fake_zipped", "zipped")


def test_the_file_list_leads_to_the_manifest_of_a_single_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = files("fake_listed", "listed")
    made["fake_listed.py"] = made.pop("fake_listed/__init__.py")
    made["fake_listed-2.1.dist-info/RECORD"] = "fake_listed.py,,\nfake_listed/aiperf.yaml,,\n"
    unpack(tmp_path, made)
    monkeypatch.syspath_prepend(str(tmp_path))
    check(Registry.discover(cache=False), "fake_listed", "listed")


GOOD = MANIFEST.format(name="thing")


@pytest.mark.parametrize(
    ("number", "manifest", "points", "cause"),
    [
        (0, "", None, "is missing from package"),
        (1, GOOD.replace(">=1,<2", ">=2"), None, "asks for plugin API >=2; this kernel has 1"),
        (2, GOOD.replace(">=1,<2", "1.x"), None, "not a range"),
        (3, GOOD.replace("version: 1", "version: 7"), None, "has schema_version 7; this kernel reads 1"),
        (4, GOOD.replace("priority: 3", "priority: high"), None, "has a bad row: Expected `int`"),
        (5, GOOD.replace("summary:", "sumary:"), None, "unknown field `sumary`"),
        (6, "a: [", None, "is not YAML"),
        (7, "- a list", None, "has schema_version None"),
        (8, GOOD, "[aiperf.exporters]\nother = {0}:X\n", "but the distribution has no such entry point"),
        (9, GOOD, "[aiperf.exporters]\nthing = {0}:X\nother = {0}:X\n", "has no row for exporters:other"),
        (10, GOOD, "[aiperf.exporters]\nthing = {0}\n", "which is not module:object"),
        (11, GOOD, "[aiperf.exporter]\nthing = {0}:X\n", "no plugin category 'exporter'; did you mean 'exporters'?"),
        (12, GOOD.replace("exporters", "exporter"), "[aiperf.exporter]\nthing = {0}:X\n", "no plugin category 'exporter'"),
        (13, GOOD.replace("exporters", "endpoints").replace("level", "strem"), "[aiperf.endpoints]\nthing = {0}:X\n",
            "endpoints have no capability 'strem'"),
        (14, GOOD.replace("exporters", "endpoints").replace("level: raw", "streaming: soon"),
            "[aiperf.endpoints]\nthing = {0}:X\n", "Expected `bool`"),
        (15, "\x00", None, "is not YAML"),
        (16, GOOD, "[aiperf.exporters]\nthing = no_such_package_anywhere:X\n", "no package 'no_such_package_anywhere'"),
        (17, GOOD + GOOD.partition("plugins:\n")[2].replace("thing", "Thing"), None, "has two rows for exporters:thing"),
        (18, GOOD, "[aiperf.exporters]\nthing = {0}:X\nTHING = {0}:Y\n", "has two entry points for exporters:thing"),
        (19, GOOD.replace("exporters", "graders").replace("level: raw", "slow: soon"),
            "[aiperf.graders]\nthing = {0}:X\n", "has a bad row: capabilities: Expected `bool`"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_package_is_recorded_as_its_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, manifest: str, points: str | None, cause: str
) -> None:
    package = f"fake_broken_{number}"
    unpack(tmp_path, files(package, "thing", manifest=manifest, points=points and points.format(package)))
    monkeypatch.syspath_prepend(str(tmp_path))
    found = Registry.discover(cache=False)
    causes = [str(each.broken) for each in found.broken if each.distribution == package.replace("_", "-")]
    assert any(cause in each for each in causes), causes


@pytest.mark.parametrize(
    ("wanted", "inside"),
    [(">=1,<2", True), (">=1", True), ("<1", False), ("==1", True), ("==1.0", True), ("!=1", False), (">1", False),
     ("<=1", True), (">=1.1", False), ("<1.5", True), (" >= 1 , < 2 ", True)],
)  # fmt: skip
def test_api_ranges(wanted: Any, inside: Any) -> None:
    assert manifest.in_range(1, wanted) is inside


LENDING = GOOD.replace("plugins:", """option_groups:
  "fake_lending.options:Common":
    - {field: low, flags: [--low], help: Low.}
    - {field: high, flags: [--high], help: High.}
plugins:""")
BORROWING = GOOD + """    options_model: "fake_borrowing.options:Own"
    option_groups: ["fake_lending.options:Common"]
    options:
      - {field: high, flags: [--high], help: Higher.}
      - {field: own, flags: [--own], help: Own.}
"""


def test_options_of_another_packages_group_stand_where_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package, text in (("fake_borrowing", BORROWING), ("fake_lending", LENDING)):
        unpack(tmp_path, files(package, "thing", manifest=text))
    monkeypatch.syspath_prepend(str(tmp_path))
    options = {each.distribution: each.options for each in discovery.discover().candidates}["fake-borrowing"]
    assert [(spec.field, spec.help) for spec in options] == [("low", "Low."), ("high", "Higher."), ("own", "Own.")]
    (tmp_path / "fake_lending" / "aiperf.yaml").write_text(GOOD)
    (broken,) = [each for each in Registry.discover(cache=False).broken if each.distribution == "fake-borrowing"]
    said = "has a row for exporters:thing with the option group fake_lending.options:Common, which no installed package"
    assert said in str(broken.broken)


def test_a_library_without_plugins_lends_options_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack(tmp_path, files("fake_user", "thing", manifest=BORROWING.replace("fake_lending", "fake_library")))
    lent = LENDING.replace("fake_lending", "fake_library").partition("plugins:")[0] + "plugins: []\n"
    unpack(tmp_path, {"fake_library/__init__.py": "", "fake_library/aiperf.yaml": lent})
    monkeypatch.syspath_prepend(str(tmp_path))
    found = discovery.discover()
    options = {each.distribution: each.options for each in found.candidates}["fake-user"]
    assert [spec.field for spec in options] == ["low", "high", "own"]
    assert str(tmp_path / "fake_library" / "aiperf.yaml") in {stamp.path for stamp in found.manifests}


def test_of_one_field_the_own_option_counts_then_the_first_groups() -> None:
    def group(**helps: str) -> tuple[OptionSpec, ...]:
        return tuple(OptionSpec(field, (f"--{field}",), text) for field, text in helps.items())

    row = manifest.ManifestRow("metrics", "m", option_groups=("a", "b"), options=group(y="own", z="own"))
    groups = {"a": group(x="a", y="a"), "b": group(w="b", x="b", y="b")}
    found = manifest.with_groups(row, groups)
    assert [(spec.field, spec.help) for spec in found] == [("x", "a"), ("y", "own"), ("w", "b"), ("z", "own")]


def test_requirements_of_the_suite_are_whole_names() -> None:
    required = discovery.required(["aiperf-plot[png]>=0.1 ; extra == 'all'", "Aiperf_Engine.Ray"])
    assert required == {"aiperf-plot", "aiperf-engine-ray"}


SUITE = "Metadata-Version: 2.1\nName: aiperf-suite\nVersion: 9\nRequires-Dist: aiperf-foo>=1; extra == 'all'\n"


@pytest.mark.parametrize(
    ("suite", "package_name", "named", "ours"),
    [
        (False, "aiperf_foo", "aiperf-foo", True), (False, "aiperf_foo", "aiperf-bar", False),
        (True, "aiperf_foo", "aiperf-foo", True), (True, "aiperf_bar", "aiperf-bar", False),
    ],
)  # fmt: skip
def test_a_manifest_claims_first_party_where_no_suite_says_who_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suite: bool, package_name: str, named: str, ours: bool
) -> None:
    package = files(package_name, "thing")
    (path,) = (name for name in package if name.endswith("aiperf.yaml"))
    package[path] += f"first_party: {named}\n"
    unpack(tmp_path, package | {"aiperf_suite-9.dist-info/METADATA": SUITE if suite else SUITE.partition("Requires")[0]})
    monkeypatch.syspath_prepend(str(tmp_path))
    assert one(Registry.discover(cache=False), package_name.replace("_", "-")).first_party is ours


def test_a_stranger_with_our_prefix_stays_a_stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack(tmp_path, files("aiperf_foo", "thing"))
    monkeypatch.syspath_prepend(str(tmp_path))
    assert one(Registry.discover(cache=False), "aiperf-foo").first_party is False


def test_the_meta_package_says_who_is_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack(tmp_path, files("aiperf_foo", "thing"))
    unpack(tmp_path, {"aiperf_suite-9.dist-info/METADATA": SUITE})
    monkeypatch.syspath_prepend(str(tmp_path))
    assert one(Registry.discover(cache=False), "aiperf-foo").first_party is True


def test_the_other_program_called_aiperf_is_detected_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack(tmp_path, {"aiperf-0.13.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: aiperf\nVersion: 0.13.0\n"})
    monkeypatch.syspath_prepend(str(tmp_path))
    problems = Registry.discover(cache=False).problems
    assert any("'aiperf' 0.13.0 is installed beside aiperf-core" in problem for problem in problems)


def forbid_discovery(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise AssertionError("everything was read again")

    monkeypatch.setattr(discovery, "discover", refuse)


def test_the_snapshot_spares_reading_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Any) -> None:
    unpack(tmp_path, files("fake_cached", "cached"))
    monkeypatch.syspath_prepend(str(tmp_path))
    check(Registry.discover(), "fake_cached", "cached")
    assert len(list(cache.glob("plugins-*.json"))) == 1
    forbid_discovery(monkeypatch)
    check(Registry.discover(), "fake_cached", "cached")


def test_a_changed_manifest_is_read_again_though_no_path_entry_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack(tmp_path, files("fake_changed", "changed"))
    monkeypatch.syspath_prepend(str(tmp_path))
    Registry.discover()
    path = tmp_path / "fake_changed" / "aiperf.yaml"
    path.write_text(path.read_text().replace("Writes things.", "Writes other things."))
    assert one(Registry.discover(), "fake-changed").summary == "Writes other things."


def test_a_manifest_that_appears_later_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack(tmp_path, files("fake_late", "late", manifest=""))
    monkeypatch.syspath_prepend(str(tmp_path))
    assert one(Registry.discover(), "fake-late").broken is not None
    unpack(tmp_path, files("fake_late", "late"))
    check(Registry.discover(), "fake_late", "late")


def test_a_package_installed_later_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    Registry.discover()
    unpack(tmp_path, files("fake_installed", "installed"))
    os.utime(tmp_path, ns=(1, 1))
    check(Registry.discover(), "fake_installed", "installed")


@pytest.mark.parametrize("damage", [b"", b"{", b"null", b'{"format": 1}'])
def test_a_damaged_snapshot_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Any, damage: Any) -> None:
    unpack(tmp_path, files("fake_damaged", "damaged"))
    monkeypatch.syspath_prepend(str(tmp_path))
    Registry.discover()
    next(cache.glob("plugins-*.json")).write_bytes(damage)
    check(Registry.discover(), "fake_damaged", "damaged")


def test_another_kernel_version_reads_everything_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack(tmp_path, files("fake_upgraded", "upgraded"))
    monkeypatch.syspath_prepend(str(tmp_path))
    Registry.discover()
    assert discovery.load() is not None
    monkeypatch.setattr(discovery, "__version__", "99.0")
    assert discovery.load() is None


def test_a_cache_that_cannot_be_written_only_costs_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack(tmp_path, files("fake_uncached", "uncached"))
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "a_file").write_text("")
    monkeypatch.setenv("AIPERF_CACHE_DIR", str(tmp_path / "a_file" / "below"))
    check(Registry.discover(), "fake_uncached", "uncached")
    check(Registry.discover(), "fake_uncached", "uncached")


def test_old_snapshots_of_other_environments_are_dropped(cache: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for index in range(40):
        (cache / f"plugins-{index:08x}.json").write_text("{}")
    Registry.discover()
    assert len(list(cache.glob("plugins-*.json"))) == 32


def test_the_environment_switches_plugins_off_and_forgives_what_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_DISABLE_PLUGINS", "uis:none, endpoints:not_here,nonsense")
    found = Registry.discover()
    assert "none" not in found.names("uis") and "local" in found.names("engines")
    assert any("endpoints:not_here, which is not installed" in problem for problem in found.problems)
    assert any("'nonsense' is not CATEGORY:NAME" in problem for problem in found.problems)


def test_the_kernel_registers_its_own_the_way_a_stranger_would() -> None:
    found = Registry.discover(cache=False)
    mine = [each for category in found.categories() for each in found.all(category) if each.distribution == "aiperf-core"]
    assert {("hooks", "schedules"), ("engines", "local"), ("uis", "none")} <= {(each.category, each.name) for each in mine}
    assert all(each.summary for each in mine)
