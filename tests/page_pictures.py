"""``make pictures``: the pictures of ``docs/pictures``, of a simulated run and of a study; the page is held by a test."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from aiperf_command_simulate.testing import Simulator, running
from PIL import Image
from program import Program

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"
SIZE = "720x360"
_COLOURS = 64
LOAD = "--endpoint-type chat --streaming --tokenizer builtin --osl 24 --goodput time_to_first_token:60 --random-seed 1"
RUN = (
    "--isl 400 --isl-stddev 250 --request-rate 30 --arrival-pattern poisson --request-count 240 --slice-duration 1"
    " --request-cancellation-rate 6 --request-cancellation-delay 0.08"
)
STUDY = "--isl 200 --request-count 64 --concurrency 1,4,16,48"
REPEATS = "--isl 200 --request-count 40 --concurrency 4,16 --num-profile-runs 4"


def made(simulator: Simulator, folder: Path) -> dict[str, Path]:
    """Each installed picture: of the run, else of the study, else of the repeats."""
    found: dict[str, Path] = {}
    for name, words in (("run", RUN), ("study", STUDY), ("repeats", REPEATS)):
        (folder / name).mkdir()
        aiperf = Program(folder / name, server_metrics=True, gpus=True)
        load = ["--model", "model", "--url", simulator.url, *LOAD.split(), *words.split(), "--ui", "none"]
        telemetry = ["--gpu-telemetry", f"{simulator.url}/dcgm/metrics", "--collect-server-metrics"]
        done = aiperf("profile", *load, *telemetry)
        if done.code:
            sys.exit(done.err)
        drawn = aiperf("plot", done.artifacts, "--size", SIZE, "--output", folder / f"{name}-plots")
        if drawn.code:
            sys.exit(drawn.err)
        for path in (folder / f"{name}-plots").glob("*.png"):
            found.setdefault(path.stem, path)
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as name, running(
        prefill_us_per_token=60, decode_ms=4, decode_batch_us=150, jitter=0.2, gpus=2, seed=3
    ) as simulator:
        pictures = made(simulator, Path(name))
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir()
        for picture, path in sorted(pictures.items()):
            with Image.open(path) as image:  # 64 colours are enough, and a third of the bytes
                image.convert("RGB").quantize(_COLOURS).save(FOLDER / f"{picture}.png", optimize=True)


if __name__ == "__main__":
    main()
