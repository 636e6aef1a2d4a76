"""Generate the modules of ``src/aiperf_rpc/protos`` from the ``.proto`` files beside them: ``python generate.py [FOLDER]``.

Needs grpcio-tools, which carries the compiler.  The compiler's own code for Python refuses runtimes of other major versions;
so a module has the file's descriptor alone, and works with each runtime from 4.25 on.  A ``.pyi`` file has the types.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent / "src"
PROTOS = "aiperf_rpc/protos"
MODULE = '''"""Generated from {name}.proto by libraries/rpc/tests/generate.py."""

from aiperf_rpc.pool import load

load(
    globals(),
{lines}
)
'''


def described(data: bytes) -> str:
    """The bytes of a descriptor as lines of a module."""
    pieces = [repr(data[at : at + 48]) for at in range(0, len(data), 48)]
    return "\n".join(f"    {piece}" for piece in pieces)


def _strict(text: str) -> str:
    """The compiler's types, with the parameters that strict checks want."""
    text = re.sub(r"_Mapping\](?!\[)", "_Mapping[str, _Any]]", text)
    return text.replace("from typing import ClassVar", "from typing import Any as _Any, ClassVar")


def generate(folder: Path) -> list[Path]:
    """Write the modules and their types to *folder*; the files that were written.

    Raises:
        RuntimeError: The compiler refused a file.
    """
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from grpc_tools import protoc

    sources = sorted((HERE / PROTOS).glob("*.proto"))
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "set"
        words = ["protoc", "-I", str(HERE / PROTOS), f"--descriptor_set_out={target}", f"--pyi_out={scratch}"]
        if protoc.main([*words, *map(str, sources)]):
            raise RuntimeError("protoc refused a file")
        files = FileDescriptorSet.FromString(target.read_bytes()).file
        types = {path.stem: path.read_text() for path in Path(scratch).glob("*.pyi")}
    written = []
    for file in files:
        name = file.name.removesuffix(".proto")
        module, stub = folder / f"{name}.py", folder / f"{name}.pyi"
        module.write_text(MODULE.format(name=name, lines=described(file.SerializeToString(deterministic=True))))
        stub.write_text(_strict(types[f"{name}_pb2"]))
        written += [module, stub]
    return written


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / PROTOS)
