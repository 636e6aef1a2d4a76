"""The contract of configuration files: values stand for options, errors name the file, and nothing else is raised."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from aiperf.errors import AiperfError, ConfigError, UsageError
from aiperf.registry.registry import Registry
from aiperf.sdk.configuration import Configuration, Option, OptionTarget, OptionValue
from aiperf.sdk.study import Setting

from aiperf_testing.findings import shown
from aiperf_testing.manifests import check_row

_OPTIONS = tuple(Option(spec, (OptionTarget("", spec.field),)) for spec in Registry([]).kernel_options)


class ConfigurationContract:
    """Subclass with a configuration's class, the text of a file, and the kernel's options that it sets, as words by field::

        class TestMineKeepsTheContract(ConfigurationContract):
            configuration = Mine
            example = "concurrency = 4"
            sets = {"concurrency": ["4"]}
            mistake = "concurency = 4"

    A flag that is on is ``True`` in *sets*.  *mistake*: the text of a file with an unknown option.
    *cells*: the text of a file with lists of values, for formats that have such files.
    """

    configuration: ClassVar[type[Configuration]]
    example: ClassVar[str]
    sets: ClassVar[Mapping[str, object]]
    mistake: ClassVar[str]
    cells: ClassVar[str] = ""

    def _suffix(self) -> str:
        suffixes = check_row("configurations", self.configuration).capabilities.get("suffixes", ())
        return str(next((suffix for suffix in suffixes if suffix != "*"), ""))

    def _read(self, folder: Path, text: str) -> list[OptionValue | UsageError]:
        path = folder / f"run{self._suffix()}"
        path.write_text(text)
        return list(type(self).configuration(path).values(_OPTIONS))

    def test_its_manifest_says_which_files_it_reads(self) -> None:
        suffixes: Any = check_row("configurations", self.configuration).capabilities.get("suffixes")
        assert isinstance(suffixes, list) and suffixes, "capabilities: {suffixes: [.toml]}"
        assert all(suffix == "*" or (suffix.startswith(".") and suffix == suffix.lower()) for suffix in suffixes), (
            f"the suffixes {shown(suffixes)} are not all lower case with a dot, or '*': change them in its manifest"
        )

    def test_a_file_sets_options(self, tmp_path: Path) -> None:
        values = self._read(tmp_path, self.example)
        assert [value.lines() for value in values if isinstance(value, UsageError)] == [], (
            f"its own example has errors: {shown([value.lines() for value in values if isinstance(value, UsageError)])}"
        )
        given = [value for value in values if isinstance(value, OptionValue)]
        assert {value.option.spec.field: value.values if value.on is None else value.on for value in given} == self.sets, (
            f"the example gives {shown(given)}, and sets says {shown(self.sets)}: make the two agree"
        )
        assert len(given) == len(self.sets), "an option has one value"

    def test_a_value_is_text_and_has_its_place(self, tmp_path: Path) -> None:
        for value in self._read(tmp_path, self.example):
            assert isinstance(value, OptionValue), f"values gave {shown(value)}: each is an OptionValue, or a UsageError"
            assert all(isinstance(word, str) for word in value.values), (
                f"values gave the words {shown(value.values)}: each is a text, as on the command line"
            )
            assert (value.on is None) == (value.option.spec.arity != "none"), (
                f"{value.typed} has on = {value.on}: a switch has True or False, any other option None"
            )
            assert len(value.values) == 1 or value.option.spec.arity != "one", (
                f"{value.typed} has {len(value.values)} words, and the option takes one"
            )
            assert f"run{self._suffix()}" in value.typed, "errors begin with this text, which names the file"

    def test_a_mistake_is_an_error_that_names_the_file(self, tmp_path: Path) -> None:
        errors = [value for value in self._read(tmp_path, self.mistake) if isinstance(value, UsageError)]
        assert errors and all(f"run{self._suffix()}" in error.message for error in errors), (
            f"the mistake gave {shown(errors)}: at least one UsageError, each with the file's name and line, was expected"
        )

    def test_a_file_of_one_run_has_no_cells(self, tmp_path: Path) -> None:
        path = tmp_path / f"run{self._suffix()}"
        path.write_text(self.example)
        section = type(self).configuration(path).sweep(_OPTIONS)
        assert section is None, f"the example of one run gave the cells {shown(section)}: sweep must give None"

    def test_each_value_of_a_list_makes_a_cell_of_its_own(self, tmp_path: Path) -> None:
        if not self.cells:
            return
        path = tmp_path / f"run{self._suffix()}"
        path.write_text(self.cells)
        file = type(self).configuration(path)
        section = file.sweep(_OPTIONS)
        assert section is not None and section.dimensions and path.name in section.typed, (
            f"the file with cells gave {shown(section)}: its lists are dimensions, and typed names the file"
        )
        for dimension in section.dimensions:
            made = [self._given(file, {dimension.path: value}) for value in dimension.values]
            assert all(made.count(each) == 1 for each in made), (
                f"the values of {dimension.path} gave {shown(made)}: each must change what the file sets"
            )

    def _given(self, file: Configuration, parameters: dict[str, Setting]) -> list[tuple[str, list[str], bool | None]]:
        values = list(file.values(_OPTIONS, parameters))
        errors = [value.lines() for value in values if isinstance(value, UsageError)]
        assert errors == [], f"a cell with {shown(parameters)} has errors: {shown(errors)}"
        return [(each.option.spec.field, each.values, each.on) for each in values if isinstance(each, OptionValue)]

    def test_pins_and_disabled_plugins_are_words(self, tmp_path: Path) -> None:
        path = tmp_path / f"run{self._suffix()}"
        path.write_text(self.example)
        words = type(self).configuration(path).plugins()
        assert set(words) <= {"pins", "disabled"}, f"plugins gave {shown(words)}: pins and disabled are the only keys"
        assert all(isinstance(word, str) for listed in words.values() for word in listed), (
            f"plugins gave {shown(words)}: every value is a list of texts"
        )

    def test_a_file_that_can_not_be_read_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="none"):
            type(self).configuration(tmp_path / f"none{self._suffix()}")
        with pytest.raises(ConfigError):
            type(self).configuration(tmp_path)

    @pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"[[[", b"{", b"a: [1\n", b"=\n= =", b"\x00"])
    def test_garbage_is_refused_with_a_sentence_at_most(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / f"run{self._suffix()}"
        path.write_bytes(content)
        try:
            read = type(self).configuration(path)
            list(read.values(_OPTIONS))
        except AiperfError as error:
            assert f"run{self._suffix()}" in error.message, (
                f"{shown(error.message)} does not name the file: begin the message with its path"
            )
