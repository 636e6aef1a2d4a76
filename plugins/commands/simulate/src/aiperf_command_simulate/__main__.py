"""``python -m aiperf_command_simulate '{"port": 0}'``: the server with its options as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from aiperf.parts.tools import specs, validate
from aiperf.sdk.errors import AiperfError, ConfigErrors

from aiperf_command_simulate import Simulate
from aiperf_command_simulate.options import SimulateOptions


def main(given: Mapping[str, Any]) -> int:
    """Serve with these fields of ``SimulateOptions``; the exit code."""
    try:
        options, errors = validate(SimulateOptions, specs(SimulateOptions), dict(given), {})
        if options is None:
            raise ConfigErrors(errors)
        return Simulate().run(options, ())
    except AiperfError as exc:
        print("simulate:", "\n".join(exc.lines()), file=sys.stderr)
        return exc.exit_code


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}))
