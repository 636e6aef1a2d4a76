"""One file in two directories."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def link(path: Path, to: Path) -> None:
    """Let *to* have the content of *path*, a file that nobody writes to any more: the same file where the system can."""
    try:
        os.link(path, to)
    except FileNotFoundError:
        raise
    except OSError:  # another disk, or a file system without links
        shutil.copyfile(path, to)
        to.chmod(path.stat().st_mode & 0o777)
