"""The {{ cookiecutter.name }} configuration: a TOML file whose keys are the words of flags.

::

    url = "http://localhost:8000"
    model = ["my-model"]
    streaming = true
    request-count = 100

    [cells]  # a run for each combination of these
    concurrency = [1, 2, 4]
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from aiperf import ConfigError, UsageError
from aiperf.sdk.configuration import Configuration, Option, OptionValue, SweepSection
from aiperf.sdk.study import Dimension, Setting


class {{ cookiecutter.__class }}(Configuration):
    """A value becomes text: the option that it stands for checks it, as if it were typed."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        try:
            self.table = tomllib.loads(path.read_text())
        except OSError as error:
            raise ConfigError(f"--config {path} can't be read: {error.strerror}") from error
        except ValueError as error:  # no UTF-8, or no TOML; the error names the line
            raise ConfigError(f"{path} is not TOML: {error}") from error

    def sweep(self, options: Sequence[Option] = ()) -> SweepSection | None:
        cells = self.table.get("cells")
        if cells is None:
            return None
        if not isinstance(cells, dict) or not all(isinstance(values, list) and values for values in cells.values()):
            raise ConfigError(f"[cells] ({self.name}): each key has a list of values")
        return SweepSection("grid", f"[cells] ({self.name})", tuple(Dimension(key, key, tuple(cells[key])) for key in cells))

    def values(
        self, options: Sequence[Option], parameters: Mapping[str, Setting] | None = None
    ) -> Iterator[OptionValue | UsageError]:
        by_flag = {flag: option for option in options for flag in option.spec.flags}
        table = {key: value for key, value in self.table.items() if key != "cells"} | dict(parameters or {})
        for key, value in table.items():
            option = by_flag.get(f"--{key}")
            where = f"{key} ({self.name})"
            if option is None:
                yield UsageError(f"{where}: there is no option --{key}", "see aiperf profile --help")
            elif option.spec.arity == "none":
                yield OptionValue(option, where, [], value is True)
            elif isinstance(value, list) and option.spec.arity == "one":
                yield UsageError(f"{where}: it takes one value")
            else:
                yield OptionValue(option, where, list(map(str, value if isinstance(value, list) else [value])))
