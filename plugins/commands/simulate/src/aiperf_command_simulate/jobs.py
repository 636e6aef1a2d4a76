"""Jobs: a film is made behind the answer to its request, and asked for until it is there."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator

from msgspec import Struct

_MOST = 100_000
"""Jobs that are kept; older ones are forgotten."""
_LIFE_S = 3600
_PIECE = bytes(1 << 18)
_FTYP = b"\x00\x00\x00\x20ftypisom\x00\x00\x02\x00isomiso2avc1mp41"


class Job(Struct, frozen=True):
    """A film in the making.  ends_ns: by CLOCK_MONOTONIC.  end: its last status, ``lost`` answers 404 at once.

    film: how its download goes: "" well, ``missing``, or ``cut`` in the middle.
    """

    id: str
    model: str
    prompt: str
    seconds: str
    size: str
    begun_ns: int
    ends_ns: int
    created_s: int
    end: str = "completed"
    film: str = ""

    def state(self, now_ns: int) -> dict[str, object]:
        """What the job says of itself."""
        over = now_ns >= self.ends_ns
        share = min(1.0, (now_ns - self.begun_ns) / max(1, self.ends_ns - self.begun_ns))
        status = self.end if over or self.end not in ("completed", "failed") else "queued" if share < 0.1 else "in_progress"
        took_s = (self.ends_ns - self.begun_ns) / 1e9
        done = over and self.end == "completed"
        failure = {"code": "generation_failed", "message": "the simulator was told to fail this job"}
        return {
            "id": self.id, "object": "video", "model": self.model, "status": status, "progress": int(100 * share),
            "created_at": self.created_s, "completed_at": self.created_s + round(took_s) if done else None,
            "expires_at": self.created_s + _LIFE_S if done else None, "prompt": self.prompt, "seconds": self.seconds,
            "size": self.size, "remixed_from_video_id": None, "error": failure if over and self.end == "failed" else None,
            **({"inference_time_s": took_s, "peak_memory_mb": 20480.0} if done else {}),
        }  # fmt: skip


class Jobs:
    """The jobs of a server.  duration_ns: of each.  film_bytes: length of each film."""

    def __init__(self, duration_ns: int, film_bytes: int) -> None:
        self.duration_ns, self.film_bytes = duration_ns, film_bytes
        self._jobs: OrderedDict[str, Job] = OrderedDict()

    def begin(self, number: int, model: str, asked: tuple[str, str, str], end: str | None, film: str | None) -> Job:
        """A new job, from now on.  *asked*: prompt, seconds and size."""
        now_ns = time.monotonic_ns()
        ends_ns, created_s = now_ns + self.duration_ns, int(time.time())
        job = Job(f"video_{number}", model, *asked, now_ns, ends_ns, created_s, end or "completed", film or "")
        self._jobs[job.id] = job
        while len(self._jobs) > _MOST:
            self._jobs.popitem(last=False)
        return job

    def get(self, name: str) -> Job | None:
        """The job of that id; None where it is unknown, or lost."""
        job = self._jobs.get(name)
        return None if job is None or job.end == "lost" else job


def film_pieces(length: int) -> Iterator[bytes]:
    """The bytes of a film: a head, and no pictures."""
    yield _FTYP[:length]
    length -= len(_FTYP)
    while length > 0:
        yield _PIECE[:length]
        length -= len(_PIECE)
