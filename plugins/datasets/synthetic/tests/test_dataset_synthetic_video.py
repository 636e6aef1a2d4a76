"""Films: what a decoder finds in them, repeatability, and what is refused."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest
from aiperf import BadDataset, Capabilities, DatasetContext, Media
from aiperf.sdk.media import media_bytes
from aiperf_dataset_synthetic.dataset import Synthetic
from aiperf_dataset_synthetic.media.frames import frames
from aiperf_dataset_synthetic.media.noise import noise
from aiperf_dataset_synthetic.media.options import MediaOptions
from aiperf_dataset_synthetic.options import SyntheticOptions

av = pytest.importorskip("av")

CHAT = Capabilities(path="/chat", tokenizes_input=False, media_in=("image", "audio", "video"))
SMALL = {"video_width": 64, "video_height": 48, "video_duration": 0.5, "video_fps": 8}


def drawn(entries: int = 1, seed: int = 7, **options: Any) -> list[Media]:
    given: dict[str, Any] = SMALL | options
    data = Synthetic(SyntheticOptions(**given), DatasetContext(entries, seed, True, None, CHAT))
    return [medium for conversation in data for medium in conversation.turns[0].media]


@pytest.mark.parametrize(("options", "codec", "sound"), [
    ({}, "vp9", None), ({"video_format": "mp4"}, "vp9", None),
    ({"video_codec": "libx264", "video_format": "mp4"}, "h264", None),
    ({"video_audio_channels": 2, "video_audio_codec": "libopus"}, "vp9", ("opus", 48_000, 2)),
    ({"video_audio_channels": 1, "video_audio_codec": "aac", "video_format": "mp4", "video_audio_depth": 24,
      "video_audio_sample_rate": 22.05}, "vp9", ("aac", 22_050, 1)),
    ({"video_audio_channels": 1, "video_audio_depth": 8, "video_audio_sample_rate": 8000.0, "video_format": "mp4"}, "vp9",
     ("opus", 48_000, 1)),
])  # fmt: skip
def test_a_decoder_finds_what_was_asked_for(options: dict[str, Any], codec: str, sound: tuple[str, int, int] | None) -> None:
    (medium,) = drawn(**options)
    mime, content = media_bytes(medium)
    assert mime == f"video/{options.get('video_format', 'webm')}"
    assert medium.seconds == 0.5
    with av.open(io.BytesIO(content)) as film:
        (stream,) = film.streams.video
        assert (stream.codec_context.name, stream.width, stream.height, stream.average_rate) == (codec, 64, 48, 8)
        tracks = [(one.codec_context.name, one.codec_context.sample_rate, one.channels) for one in film.streams.audio]
        assert tracks == ([] if sound is None else [sound])
        assert sum(1 for _ in film.decode(stream)) == 4
    if sound is not None:
        with av.open(io.BytesIO(content)) as film:
            length_s = sum(frame.samples for frame in film.decode(audio=0)) / sound[1]
        assert length_s == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize("kind", ["moving_shapes", "grid_clock", "noise"])
def test_frames_move_and_films_differ(kind: str) -> None:
    def film(entry: int) -> list[bytes]:
        return [image.tobytes() for image in frames(kind, (40, 30), 4, 6, (1, "a", entry))]

    assert film(0) == film(0)
    assert len(set(film(0))) == 6
    assert film(0)[0] != film(1)[0]
    assert {len(frame) for frame in film(0)} == {40 * 30 * 3}


def test_frames_of_noise_are_the_noise() -> None:
    first, *_ = frames("noise", (8, 4), 4, 2, (1, "a", 5))
    assert first.tobytes() == noise(1, "a.frame0", 5, 96).tobytes()


def test_a_film_is_a_function_of_seed_and_entry() -> None:
    options: dict[str, Any] = {"video_audio_channels": 1, "video_format": "mp4"}
    assert drawn(3, **options)[:2] == drawn(2, **options)
    assert drawn(2, **options) != drawn(2, seed=8, **options)
    assert len({medium.value for medium in drawn(3, video_batch_size=2)}) == 6


@pytest.mark.parametrize(("options", "words", "hint"), [
    ({"video_codec": "libx246"}, "has no encoder of video called 'libx246'", "did you mean libx264?"),
    ({"video_codec": "aac"}, "has no encoder of video called 'aac'", "choose one that it has, such as libvpx"),
    ({"video_codec": "libx264"}, "--video-codec libx264 can't make films of 64 x 48 pixels in webm", "another --video-codec"),
    ({"video_codec": "libx264", "video_format": "mp4", "video_width": 63}, "of 63 x 48 pixels in mp4", "even sides"),
])  # fmt: skip
def test_what_ffmpeg_cannot_make_is_told_before_the_run(options: dict[str, Any], words: str, hint: str) -> None:
    with pytest.raises(BadDataset) as caught:
        drawn(0, **options)
    assert words in caught.value.message
    assert hint in caught.value.hints[0]


def test_an_absent_pyav_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(BadDataset) as caught:
        drawn(0)
    assert caught.value.hints[0] == "pip install 'aiperf-suite[video]'"


@pytest.mark.parametrize(("options", "words"), [
    ({"video_width": 9}, "--video-width needs --video-height: a film has both sides"),
    ({"video_height": 9}, "--video-height needs --video-width: a film has both sides"),
    ({"video_fps": 9}, "--video-fps needs --video-width and --video-height"),
    ({"video_width": 10_000, "video_height": 10_000}, "a frame may have 10,000 x 10,000 pixels, 100 megapixels"),
    ({**SMALL, "video_audio_depth": 8}, "--video-audio-depth has no use: the film is silent"),
    ({**SMALL, "video_audio_channels": 1, "video_audio_codec": "aac"}, "webm takes no sound of aac, but of libvorbis"),
    ({**SMALL, "video_audio_channels": 1, "video_audio_sample_rate": 7.0}, "7,000 Hz is out of the range of 8,000 to 96,000"),
    ({**SMALL, "video_audio_channels": 1, "video_audio_depth": 20}, "--video-audio-depth: a sample has no 20 bits"),
])  # fmt: skip
def test_options_that_contradict_each_other_are_named(options: dict[str, Any], words: str) -> None:
    (problem,) = MediaOptions(**options).media_problems({})
    assert words in problem
