"""The {{ cookiecutter.name }} live view: how many requests have ended, twice a second, in a file of its own."""

from __future__ import annotations

from pathlib import Path

from aiperf import LiveRun, LiveView, Snapshot


class {{ cookiecutter.__class }}(LiveView[None]):
    """It has a process to itself: one that is slow, hangs or dies costs the run nothing.  ``ask_stop`` would end the run."""

    _file: Path | None = None

    def begin(self, run: LiveRun) -> None:
        self._file = Path(run.plan.output.artifacts, "{{ cookiecutter.__key }}.csv")
        self._file.write_text("phase,elapsed_s,done\n", encoding="utf-8")

    def show(self, snapshot: Snapshot) -> None:
        """Called twice a second while a phase runs, and once all requests are reduced."""
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(f"{snapshot.phase},{snapshot.elapsed_s:.3f},{snapshot.completed + snapshot.errors}\n")
