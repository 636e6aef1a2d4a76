"""The files in the READMEs of data sets are read as is said there, and each format has one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from aiperf.registry.registry import Registry
from aiperf_command_datasets.names import named_sets
from aiperf_command_validate.dataset import read

ROOT = Path(__file__).parents[1]
READMES = "\n".join(path.read_text() for path in sorted(ROOT.glob("plugins/*/*/README.md")))
SECTIONS = dict(re.findall(r"^## A file of `(\w+)`\n(.*?)(?=^## |^# |\Z)", READMES, re.MULTILINE | re.DOTALL))
FILE = re.compile(r"^`([\w.:]+)`:\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RESULT = re.compile(r"^Recognised: (\d+) conversations?, (\d+) turns?\.$", re.MULTILINE)


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry.discover()


def test_the_readmes_have_a_file_of_every_format(registry: Registry) -> None:
    known = [plugin for plugin in registry.all("datasets") if plugin.first_party and plugin.capabilities.get("reads")]
    formats = [plugin.name for plugin in known if plugin.capabilities.get("selected_by", "format") == "format"]
    assert sorted(SECTIONS) == sorted(formats)


@pytest.mark.parametrize("name", SECTIONS)
def test_a_file_is_read_as_its_readme_says(name: str, registry: Registry, tmp_path: Path) -> None:
    files, (result,) = FILE.findall(SECTIONS[name]), RESULT.findall(SECTIONS[name])
    prefix = files[0][0].rpartition(":")[0]
    paths = [tmp_path / file.rpartition(":")[2] for file, _ in files]
    for path, (_, text) in zip(paths, files, strict=True):
        write(path, text)
    given = paths[0] if len(files) == 1 else tmp_path
    done = read(Path(f"{prefix}:{given}") if prefix else given, "dataset", registry)
    assert (done.fault, done.format, done.conversations, done.turns) == (None, name, *map(int, result))


def write(path: Path, text: str) -> None:
    if path.suffix != ".parquet":
        path.write_text(text)
        return
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pylist([json.loads(line) for line in text.splitlines()]), path)


def test_the_page_names_the_public_sets_without_a_commit(registry: Registry) -> None:
    page = (ROOT / "docs" / "datasets.md").read_text()
    (named,) = re.findall(r"^No commit is pinned for these.*?\.", page, re.MULTILINE | re.DOTALL)
    sources = {one.name: one.source for one in named_sets(registry) if one.source is not None and not one.source.url}
    open_ = [name for name, source in sources.items() if not re.fullmatch("[0-9a-f]{40}", source.revision)]
    assert re.findall(r"`(\w+)`", named) == sorted(open_)
