"""``python -m aiperf_command_simulate '{"port": 0}'``: the server with its options as JSON, for ``testing.running``."""

from __future__ import annotations

import sys

from aiperf.errors import AiperfError
from pydantic import ValidationError

from aiperf_command_simulate import Simulate
from aiperf_command_simulate.options import SimulateOptions


def main() -> int:
    try:
        options = SimulateOptions.model_validate_json(sys.argv[1] if len(sys.argv) > 1 else "{}")
        return Simulate().run(options, ())
    except ValidationError as exc:
        for error in exc.errors():
            print(f"simulate: {'.'.join(map(str, error['loc']))}: {error['msg']}", file=sys.stderr)
        return 1
    except AiperfError as exc:
        print("simulate:", "\n".join(exc.lines()), file=sys.stderr)
        return exc.exit_code


if __name__ == "__main__":
    sys.exit(main())
