"""``python -m aiperf_command_simulate '{"port": 0}'``: the server with its options as JSON, for ``testing.running``."""

from __future__ import annotations

import json
import sys

from aiperf.parts.tools import specs, validate
from aiperf.sdk.errors import AiperfError, ConfigErrors

from aiperf_command_simulate import Simulate
from aiperf_command_simulate.options import SimulateOptions


def main() -> int:
    try:
        given = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
        options, errors = validate(SimulateOptions, specs(SimulateOptions), given, {})
        if options is None:
            raise ConfigErrors(errors)
        return Simulate().run(options, ())
    except AiperfError as exc:
        print("simulate:", "\n".join(exc.lines()), file=sys.stderr)
        return exc.exit_code


if __name__ == "__main__":
    sys.exit(main())
