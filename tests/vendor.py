"""Fetch what others wrote for pages into ``static/vendor`` of aiperf-pages: ``make vendor``.

Needs npm.  Nothing is written unless every hash in ``pins.json`` fits.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "libraries" / "pages" / "src" / "aiperf_pages" / "static" / "vendor"
PINS = TARGET / "pins.json"


def main() -> int:
    """0 once all files are there; 1 where a file is not the one that its hash names."""
    pins = json.loads(PINS.read_text())
    files: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as folder:
        for package, pin in pins.items():
            words = ["npm", "pack", "--silent", f"{package}@{pin['version']}"]
            name = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout.split()[-1]
            with tarfile.open(Path(folder) / name) as archive:
                for path, (target, digest) in pin["files"].items():
                    member = archive.extractfile(f"package/{path}")
                    content = b"" if member is None else member.read()
                    if hashlib.sha256(content).hexdigest() != digest:
                        print(f"vendor: {path} of {package} {pin['version']} has another hash than {digest}", file=sys.stderr)
                        return 1
                    files[target] = content
    TARGET.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (TARGET / name).write_bytes(content)
    print(f"vendor: {', '.join(files)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
