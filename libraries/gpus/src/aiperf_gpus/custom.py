"""Further metrics of DCGM, which a file of the user names: a line each, ``DCGM_FI_DEV_FAN_SPEED, gauge, Fan speed (in %)``."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from aiperf_gpus.series import Fold, GpuQuantity

_NAME = re.compile(r"DCGM_FI_[A-Z0-9_]+")
_UNIT = re.compile(r"\((?:in )?([^()]*)\)\s*\.?\s*$")
_KINDS = {"gauge": Fold.LEVEL, "counter": Fold.GROWTH}
_WORDS = {"Gpu": "GPU", "Sm": "SM", "Pcie": "PCIe", "Nvlink": "NVLink", "Xid": "XID", "Ecc": "ECC", "Fb": "FB", "Dram": "DRAM",
          "Tx": "TX", "Rx": "RX", "Id": "ID", "Bar1": "BAR1", "Hbm": "HBM", "Mig": "MIG"}  # fmt: skip


def read_custom(path: Path) -> dict[str, GpuQuantity]:
    """The quantities by field.  Units and kinds are those of the file, values those of the exporter.

    Raises:
        ValueError: The file can't be read, or a line is no metric; names file and line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} can't be read: {error}") from error
    found: dict[str, GpuQuantity] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        cells = [cell.strip() for cell in next(csv.reader([line]))]
        if len(cells) < 3 or not cells[2]:
            raise ValueError(f"{path}, line {number}: {line.strip()!r} is not FIELD, gauge or counter, and a help text")
        name, kind, about = cells[0], cells[1].lower(), ", ".join(cells[2:])
        if not _NAME.fullmatch(name):
            raise ValueError(f"{path}, line {number}: {name!r} is no field of DCGM: its name begins with DCGM_FI_")
        if kind not in _KINDS:
            raise ValueError(f"{path}, line {number}: {cells[1]!r} is no kind: gauge and counter are")
        found[name] = GpuQuantity(_series_name(name), _title(about) or name, _unit(about), _KINDS[kind])
    return found


def _series_name(field: str) -> str:
    for start in ("DCGM_FI_DEV_", "DCGM_FI_PROF_", "DCGM_FI_"):
        if field.startswith(start) and field != start:
            return f"nvidia_{field.removeprefix(start).lower()}"
    raise AssertionError(field)


def _unit(about: str) -> str:
    found = _UNIT.search(about)
    return "" if found is None else found[1].strip()


def _title(about: str) -> str:
    words = about.partition("(")[0].strip(" .").title().split()
    return " ".join(_WORDS.get(word, word) for word in words)


__all__ = ["read_custom"]
