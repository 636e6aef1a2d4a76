"""Sound: clips of normally distributed noise, their length, depth and rate drawn by seed and entry; WAV and MP3."""

from __future__ import annotations

import io
import wave
from base64 import b64encode
from typing import TYPE_CHECKING, Any

from aiperf import BadDataset, Media
from aiperf.sdk.draws import normal, uniform

from aiperf_dataset_synthetic.media.noise import samples
from aiperf_dataset_synthetic.media.options import DEVIATIONS, MediaOptions

if TYPE_CHECKING:
    from aiperf_dataset_synthetic.media.noise import Samples

SHORTEST_S = 0.01
_REDRAWS = 64
"""Draws outside the bounds, after which the mean is taken."""
_FORMATS = ("wav", "mp3")


class Clips:
    """Draws the clips of all turns.

    Raises:
        BadDataset: MP3 is asked for, and soundfile isn't installed.
    """

    def __init__(self, options: MediaOptions, seed: int) -> None:
        self._options, self._seed = options, seed
        self._rates, self._shape = options.clip_rates, options.clip_shape
        if options.audio_format != "wav":
            _soundfile()

    def of(self, entry: int, turn: int) -> list[Media]:
        """The clips of a turn of conversation *entry*."""
        return [self._clip(entry, f"synthetic.audio.{turn}.{place}") for place in range(self._options.clips)]

    def _clip(self, entry: int, what: str) -> Media:
        options, seed = self._options, self._seed
        form = options.audio_format
        if form == "random":
            form = _FORMATS[int(uniform(seed, f"{what}.format", entry) * len(_FORMATS))]
        depth = options.audio_depths[int(uniform(seed, f"{what}.depth", entry) * len(options.audio_depths))]
        rate = self._rates[int(uniform(seed, f"{what}.rate", entry) * len(self._rates))]
        frames = max(1, round(self._length_s(entry, what) * rate))
        content = encoded(seed, f"{what}.noise", entry, (frames, options.audio_channels, rate, depth), form)
        return Media("audio", f"{form},{b64encode(content).decode()}", seconds=frames / rate)

    def _length_s(self, entry: int, what: str) -> float:
        if self._shape is not None:
            return self._shape.size(self._seed, f"{what}.length", entry, SHORTEST_S)
        mean, stddev = self._options.clip_length_s, self._options.audio_length_stddev
        for attempt in range(_REDRAWS if stddev > 0 else 0):
            drawn = mean + stddev * normal(self._seed, f"{what}.length.{attempt}", entry)
            if SHORTEST_S <= drawn <= mean + DEVIATIONS * stddev:
                return drawn
        return max(SHORTEST_S, mean)


def encoded(seed: int, stream: str, index: int, shape: tuple[int, int, int, int], form: str) -> bytes:
    """Noise as ``wav`` or ``mp3``.  shape: frames, channels, Hz and bits of a sample; MP3 has its own bits."""
    frames, channels, rate, depth = shape
    if form == "wav":
        return wav(pcm(samples(seed, stream, index, frames * channels, depth), depth), channels, rate, depth)
    file = io.BytesIO()
    _soundfile().write(file, samples(seed, stream, index, frames * channels, 16).reshape(-1, channels), rate, format="MP3")
    return file.getvalue()


def pcm(values: Samples, depth: int) -> bytes:
    """Samples of *depth* bits as WAV has them: little-endian, signed above eight bits."""
    if depth == 8:
        return (values + 128).astype("u1").tobytes()
    if depth == 24:
        return values.astype("<i4").view("u1").reshape(-1, 4)[:, :3].tobytes()
    return values.astype(f"<i{depth // 8}", copy=False).tobytes()


def wav(content: bytes, channels: int, rate: int, depth: int) -> bytes:
    """A WAV file around little-endian samples."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(channels)
        writer.setsampwidth(depth // 8)
        writer.setframerate(rate)
        writer.writeframes(content)
    return file.getvalue()


def _soundfile() -> Any:
    try:
        import soundfile
    except (ImportError, OSError) as error:  # OSError: without the library it wraps
        raise BadDataset(
            f"--audio-format: MP3 needs soundfile, which can't be loaded: {error}",
            "pip install 'aiperf-suite[audio]', or use --audio-format wav",
        ) from error
    return soundfile
