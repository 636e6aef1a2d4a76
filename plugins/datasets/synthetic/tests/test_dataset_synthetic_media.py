"""Pictures and sound beside the texts: sizes, formats, repeatability, sources, and what is refused."""

from __future__ import annotations

import base64
import io
import logging
import math
import struct
import sys
import wave
import zlib
from pathlib import Path
from typing import Any

import pytest
from aiperf import BadDataset, Capabilities, DatasetContext, Media
from aiperf.sdk.media import media_bytes
from aiperf_dataset_synthetic.contract import Bytes
from aiperf_dataset_synthetic.dataset import Synthetic
from aiperf_dataset_synthetic.media.images import Images
from aiperf_dataset_synthetic.media.noise import SIGMA, noise, samples
from aiperf_dataset_synthetic.media.options import MediaOptions
from aiperf_dataset_synthetic.options import SyntheticOptions
from PIL import Image

CHAT = Capabilities(path="/chat", tokenizes_input=True, produces_tokens=True, multi_turn=True, media_in=("image", "audio"))
SMALL = {"image_width_mean": 24.0, "image_height_mean": 16.0}


def context(entries: int = 4, seed: int = 7, capabilities: Capabilities = CHAT) -> DatasetContext:
    tokenizer = Bytes() if capabilities.tokenizes_input or capabilities.tokens_streamed else None
    return DatasetContext(entries, seed, True, tokenizer, capabilities)


def drawn(entries: int = 4, seed: int = 7, capabilities: Capabilities = CHAT, **options: Any) -> list[Media]:
    """The media of the first turns."""
    data = Synthetic(SyntheticOptions(**({"isl": 5} | options)), context(entries, seed, capabilities))
    return [medium for conversation in data for medium in conversation.turns[0].media]


def picture(medium: Media) -> Image.Image:
    mime, content = media_bytes(medium)
    image = Image.open(io.BytesIO(content))
    image.load()
    assert mime == f"image/{(image.format or '').lower()}"
    return image


def clip(medium: Media) -> wave.Wave_read:
    form, _, data = medium.value.partition(",")
    assert form == "wav"
    return wave.open(io.BytesIO(base64.b64decode(data, validate=True)))


def sentence(**options: Any) -> str:
    (problem,) = SyntheticOptions(**options).problems({})
    return problem


# Noise


def test_noise_is_splitmix64_of_the_key() -> None:
    import hashlib

    key = int.from_bytes(hashlib.sha256(b"5:a.stream:3").digest()[:8], "big")
    expected = b""
    for step in range(1, 5):
        z = (key + step * 0x9E3779B97F4A7C15) % 2**64
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        expected += (z ^ (z >> 31)).to_bytes(8, "little")
    assert noise(5, "a.stream", 3, 30).tobytes() == expected[:30]


def test_long_noise_goes_on_across_pieces() -> None:
    size = (1 << 18) + 24
    long = noise(1, "s", 0, size)
    assert long[: 1 << 18].tobytes() == noise(1, "s", 0, 1 << 18).tobytes()
    assert len({long.tobytes()[i : i + 8] for i in range(0, size, 8)}) == size // 8
    counts = [int((long == byte).sum()) for byte in range(256)]
    assert sum((count - size / 256) ** 2 / (size / 256) for count in counts) < 360  # chi square, 255 degrees: p < 1e-5


@pytest.mark.parametrize("depth", [8, 16, 24, 32])
def test_samples_are_normal_and_fit_their_bits(depth: int) -> None:
    values = samples(3, "a", 1, 200_000, depth) / 2.0 ** (depth - 1)
    assert abs(values.mean()) < 0.002
    assert values.std() == pytest.approx(SIGMA, rel=0.02)
    assert ((values > -SIGMA) & (values < SIGMA)).mean() == pytest.approx(math.erf(2**-0.5), abs=0.01)
    assert ((values > -2 * SIGMA) & (values < 2 * SIGMA)).mean() == pytest.approx(math.erf(2**0.5), abs=0.005)
    assert values.max() < 1
    if depth > 16:
        assert len(set((samples(3, "a", 1, 4000, depth) & 255).tolist())) > 200, "the lower bits vary"


# Pictures


@pytest.mark.parametrize("form", ["png", "jpeg"])
def test_pictures_have_their_size_and_format(form: str) -> None:
    media = drawn(image_format=form, **SMALL)
    assert [picture(medium).format for medium in media] == [form.upper()] * 4
    assert {picture(medium).size for medium in media} == {(24, 16)}
    assert len({medium.value for medium in media}) == 4


def test_a_png_of_noise_has_the_noise_bit_by_bit() -> None:
    (medium,) = drawn(1, image_format="png", **SMALL)
    assert picture(medium).convert("RGB").tobytes() == noise(7, "synthetic.image.0.0.noise", 0, 3 * 24 * 16).tobytes()
    _, content = media_bytes(medium)
    at, names = 8, []
    while at < len(content):
        (size,) = struct.unpack(">I", content[at : at + 4])
        names.append(content[at + 4 : at + 8])
        assert struct.unpack(">I", content[at + 8 + size : at + 12 + size]) == (zlib.crc32(content[at + 4 : at + 8 + size]),)
        at += size + 12
    assert names == [b"IHDR", b"IDAT", b"IEND"]


def test_a_jpeg_has_the_quality_of_85_and_all_colours() -> None:
    (medium,) = drawn(1, image_width_mean=64.0, image_height_mean=64.0)
    image = picture(medium)
    reference = io.BytesIO()
    Image.new("RGB", (8, 8)).save(reference, "JPEG", quality=85, subsampling=0)
    assert image.quantization == Image.open(io.BytesIO(reference.getvalue())).quantization  # type: ignore[attr-defined]
    assert [layer[1:3] for layer in image.layer] == [(1, 1)] * 3  # type: ignore[attr-defined]


def test_sizes_are_normal_around_their_means() -> None:
    media = drawn(300, image_width_mean=40.0, image_width_stddev=5.0, image_height_mean=20.0, image_format="png")
    widths = [picture(medium).width for medium in media]
    assert {picture(medium).height for medium in media} == {20}
    assert sum(widths) / 300 == pytest.approx(40, abs=1)
    assert (sum((width - 40) ** 2 for width in widths) / 300) ** 0.5 == pytest.approx(5, abs=0.8)


def test_one_side_alone_makes_the_other_512() -> None:
    (medium,) = drawn(1, image_height_mean=8.0)
    assert picture(medium).size == (512, 8)


def test_random_draws_a_format_for_each_picture() -> None:
    forms = [picture(medium).format for medium in drawn(60, image_format="random", **SMALL)]
    assert 15 < forms.count("PNG") < 45


def test_an_entry_is_a_function_of_the_seed_and_its_number() -> None:
    options = {**SMALL, "image_width_stddev": 4.0, "image_format": "random", "audio_length_mean": 0.02, "audio_batch_size": 2}
    few, many = drawn(3, **options), drawn(6, **options)
    assert many[: len(few)] == few
    assert drawn(3, seed=8, **options) != few
    assert [medium.kind for medium in few[:3]] == ["image", "audio", "audio"]


def test_media_leave_the_texts_as_they_were() -> None:
    alone = [one.turns[0].texts for one in Synthetic(SyntheticOptions(isl=5), context())]
    beside = [one.turns[0].texts for one in Synthetic(SyntheticOptions(isl=5, **SMALL), context())]
    assert alone == beside


def test_each_turn_has_a_batch_of_its_own() -> None:
    options = SyntheticOptions(isl=5, turns_mean=3, image_batch_size=2, **SMALL)
    (conversation,) = Synthetic(options, context(1))
    assert [len(turn.media) for turn in conversation.turns] == [2, 2, 2]
    assert len({medium.value for turn in conversation.turns for medium in turn.media}) == 6


def test_without_text_turns_have_media_alone() -> None:
    (conversation,) = Synthetic(SyntheticOptions(isl=0, **SMALL), context(1))
    assert conversation.turns[0].texts == ()
    retrieval = Capabilities(path="/infer", media_in=("image",))
    (conversation,) = Synthetic(SyntheticOptions(**SMALL), context(1, capabilities=retrieval))
    assert conversation.turns[0].texts == ()
    assert len(conversation.turns[0].media) == 1


@pytest.mark.parametrize("off", [
    {"image_batch_size": 0, **SMALL}, {"image_width_mean": 0.0, "image_height_mean": 9.0}, {"image_width_mean": 0.0},
    {"audio_length_mean": 0.0, "audio_format": "mp3"}, {"audio_batch_size": 0}, {"video_batch_size": 0, "video_width": 9},
])  # fmt: skip
def test_zero_switches_a_kind_off(off: dict[str, Any]) -> None:
    assert SyntheticOptions(**off).problems({}) == []
    assert drawn(1, **off) == []


# Sources of pictures


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, colour in (("a.png", (250, 0, 0)), ("b.JPG", (0, 250, 0)), ("c.webp", (0, 0, 250))):
        Image.new("RGB", (32, 32), colour).save(tmp_path / name)
    (tmp_path / "notes.txt").write_text("no picture")
    (tmp_path / "deep.png").mkdir()
    return tmp_path


def colour_of(medium: Media) -> int:
    """The place of the strongest colour."""
    levels = picture(medium).convert("RGB").resize((1, 1)).tobytes()
    return levels.index(max(levels))


def test_sequential_cycle_uses_files_by_name(folder: Path) -> None:
    media = drawn(7, image_source=str(folder), image_source_sampling="sequential_cycle", **SMALL)
    assert [colour_of(medium) for medium in media] == [0, 1, 2, 0, 1, 2, 0]
    assert {picture(medium).size for medium in media} == {(24, 16)}


def test_shuffle_cycle_uses_each_file_once_a_cycle(folder: Path) -> None:
    media = drawn(30, image_source=str(folder), image_source_sampling="shuffle_cycle", **SMALL)
    cycles = [tuple(colour_of(medium) for medium in media[at : at + 3]) for at in range(0, 30, 3)]
    assert all(sorted(cycle) == [0, 1, 2] for cycle in cycles)
    assert len(set(cycles)) > 1


def test_random_draws_with_replacement(folder: Path) -> None:
    colours = [colour_of(medium) for medium in drawn(90, image_source=str(folder), **SMALL)]
    assert all(15 < colours.count(colour) < 45 for colour in range(3))


def test_later_turns_go_on_with_the_cycle(folder: Path) -> None:
    options = SyntheticOptions(
        isl=5, turns_mean=2, image_source=str(folder), image_source_sampling="sequential_cycle", **SMALL
    )  # fmt: skip
    entries = [[colour_of(turn.media[0]) for turn in one.turns] for one in Synthetic(options, context(4))]
    assert entries == [[0, 1], [1, 2], [2, 0], [0, 1]]


def test_unreadable_files_are_named_once_and_left_out(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "b.JPG").write_bytes(b"\xff\xd8\xff broken")
    with caplog.at_level(logging.WARNING):
        media = drawn(6, image_source=str(folder), image_source_sampling="sequential_cycle", **SMALL)
    assert [colour_of(medium) for medium in media] == [0, 2, 2, 0, 2, 2]
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        f"{folder / 'b.JPG'} is left out of the pictures"
    ]


def test_a_picture_of_100_megapixels_is_left_out(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    head = struct.pack(">2I5B", 10_000, 10_000, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + head
    content = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))
    (folder / "a.png").write_bytes(content + struct.pack(">I", 0) + b"IDAT" + struct.pack(">I", zlib.crc32(b"IDAT")))
    with caplog.at_level(logging.WARNING):
        drawn(3, image_source=str(folder), image_source_sampling="sequential_cycle", **SMALL)
    assert "it has 100 megapixels, and the most is 64" in caplog.text


def test_a_folder_of_nothing_readable_ends_the_build(tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match="has no file that is called like a picture"):
        drawn(1, image_source=str(tmp_path), **SMALL)
    (tmp_path / "a.png").write_bytes(b"no picture")
    with pytest.raises(BadDataset, match=r"none of the 1 files of .* can be read as a picture"):
        drawn(1, image_source=str(tmp_path), **SMALL)


def test_assets_are_four_pictures_at_the_size_asked_for() -> None:
    media = drawn(
        8, image_source="assets", image_source_sampling="sequential_cycle", image_format="png", image_width_mean=96.0,
        image_height_mean=64.0,
    )  # fmt: skip
    assert len({medium.value for medium in media}) == 4
    assert media[:4] == media[4:]
    for medium in media[:4]:
        assert picture(medium).size == (96, 64)
        assert len(set(zip(*[iter(picture(medium).convert("RGB").tobytes())] * 3, strict=True))) > 20


def test_encoded_pictures_of_a_source_are_kept_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiperf_dataset_synthetic.media.images._CACHED_BYTES", 3000)
    images = Images(MediaOptions(image_source="assets", image_width_mean=30.0, image_width_stddev=9.0), 1, 50)
    for entry in range(50):
        images.of(entry, 0)
    assert sum(map(len, images._encoded.values())) <= 3000


# Sound


@pytest.mark.parametrize(("depth", "rate", "channels"), [(8, 8.0, 1), (16, 16.0, 2), (24, 44.1, 1), (32, 48000.0, 2)])
def test_a_clip_has_its_length_depth_rate_and_channels(depth: int, rate: float, channels: int) -> None:
    options = {"audio_depths": [depth], "audio_sample_rates": [rate], "audio_channels": channels}
    (medium,) = drawn(1, audio_length_mean=0.25, **options)
    with clip(medium) as sound:
        hertz = sound.getframerate()
        assert (8 * sound.getsampwidth(), sound.getnchannels()) == (depth, channels)
        assert hertz == round(rate if rate > 96 else rate * 1000)
        assert sound.getnframes() == round(0.25 * hertz)
        content = sound.readframes(sound.getnframes())
    assert len(content) == round(0.25 * hertz) * channels * depth // 8
    assert medium.seconds == pytest.approx(0.25)
    width = depth // 8
    values = [int.from_bytes(content[at : at + width], "little", signed=depth > 8) for at in range(0, len(content), width)]
    values = [value - 128 for value in values] if depth == 8 else values
    mean = sum(values) / len(values)
    deviation = (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5
    assert deviation / 2 ** (depth - 1) == pytest.approx(SIGMA, rel=0.1)


def test_depths_and_rates_are_drawn_for_each_clip() -> None:
    media = drawn(60, audio_length_mean=0.01, audio_depths=[8, 24], audio_sample_rates=[8.0, 16.0])
    seen = [(clip(medium).getsampwidth(), clip(medium).getframerate()) for medium in media]
    assert {pair: seen.count(pair) > 5 for pair in seen} == dict.fromkeys(
        [(1, 8000), (1, 16000), (3, 8000), (3, 16000)], True
    )


def test_lengths_are_normal_and_never_below_a_hundredth() -> None:
    media = drawn(200, audio_length_mean=0.05, audio_length_stddev=0.04, audio_sample_rates=[8.0])
    lengths = [clip(medium).getnframes() / 8000 for medium in media]
    assert lengths == [pytest.approx(medium.seconds) for medium in media]
    assert min(lengths) >= 0.01
    assert len(set(lengths)) > 100


@pytest.mark.parametrize("asked", [{"audio_batch_size": 1}, {"audio_length_stddev": 0.0}])
def test_a_batch_or_a_spread_alone_asks_for_ten_seconds(asked: dict[str, Any]) -> None:
    (medium,) = drawn(1, **asked)
    assert medium.seconds == 10.0


@pytest.mark.parametrize(("rate", "channels"), [(16.0, 1), (22.05, 2), (44.1, 2)])
def test_mp3_is_read_as_mp3(rate: float, channels: int) -> None:
    soundfile = pytest.importorskip("soundfile")
    (medium,) = drawn(1, audio_length_mean=0.5, audio_format="mp3", audio_sample_rates=[rate], audio_channels=channels)
    form, _, data = medium.value.partition(",")
    info = soundfile.info(io.BytesIO(base64.b64decode(data)))
    assert (form, info.format, info.samplerate, info.channels) == ("mp3", "MP3", rate * 1000, channels)
    assert info.duration == pytest.approx(0.5, abs=0.1)
    if (rate, channels) != (44.1, 2):  # LAME decides by memory that it hasn't written there (README)
        again = drawn(1, audio_length_mean=0.5, audio_format="mp3", audio_sample_rates=[rate], audio_channels=channels)
        assert again == [medium]


def test_random_draws_wav_and_mp3() -> None:
    pytest.importorskip("soundfile")
    forms = [medium.value.partition(",")[0] for medium in drawn(30, audio_length_mean=0.05, audio_format="random")]
    assert 5 < forms.count("mp3") < 25
    assert forms.count("mp3") + forms.count("wav") == 30


def test_an_absent_soundfile_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(BadDataset) as caught:
        drawn(1, audio_length_mean=1.0, audio_format="random")
    assert "pip install 'aiperf-suite[audio]'" in caught.value.hints[0]
    assert len(drawn(1, audio_length_mean=1.0)) == 1, "wav needs nothing"


# What is refused


@pytest.mark.parametrize(("options", "words"), [
    ({"image_width_mean": 1e4, "image_height_mean": 1e4}, "10,000 x 10,000 pixels, 100 megapixels, and the most is 64"),
    ({"image_width_mean": 100_000.0, "image_height_mean": 1.0}, "100,000 pixels long, and the most is 65,500"),
    ({"image_width_mean": 6000.0, "image_width_stddev": 3000.0, "image_height_mean": 6000.0}, "18,000 x 6,000 pixels"),
    ({"image_format": "png"}, "--image-format needs --image-width-mean"),
    ({"image_batch_size": 2}, "--image-batch-size needs --image-width-mean"),
    ({"image_source_sampling": "shuffle_cycle", **SMALL}, "--image-source-sampling has no use: no two pictures of noise"),
    ({"image_source": "assest", **SMALL}, "did you mean assets?"),
    ({"image_source": "nowhere/at-all", **SMALL}, "neither noise nor assets nor a directory"),
    ({"audio_format": "mp3"}, "--audio-format needs --audio-length-mean"),
    ({"audio_length_mean": 1.0, "audio_depths": [16, 12]}, "--audio-depths: a sample has no 12 bits"),
    ({"audio_length_mean": 1.0, "audio_sample_rates": [500_000.0]}, "500,000 Hz is out of the range"),
    ({"audio_length_mean": 1.0, "audio_format": "random", "audio_sample_rates": [16.0, 15.0]}, "MP3 has no rate of 15 kHz"),
    ({"audio_length_mean": 10_000.0}, "--audio-length-mean: a clip of 10000 s has up to 305 MiB, and the most is 256"),
    ({"isl": 0, "isl_stddev": 4.0, **SMALL}, "--isl and --isl-stddev exclude each other: without text"),
    ({"isl": 0}, "--isl 0 switches text off, and there is nothing else to send"),
])  # fmt: skip
def test_what_cannot_be_drawn_gets_a_sentence(options: dict[str, Any], words: str) -> None:
    assert words in sentence(**options)


@pytest.mark.parametrize(("options", "flag", "kind"), [
    (SMALL, "--image-width-mean", "image"), ({"image_height_mean": 8.0}, "--image-height-mean", "image"),
    ({"audio_batch_size": 1}, "--audio-batch-size", "audio"),
])  # fmt: skip
def test_an_endpoint_without_such_media_is_named_before_the_run(options: dict[str, Any], flag: str, kind: str) -> None:
    text = Capabilities(path="/completions", tokenizes_input=True, produces_tokens=True)
    with pytest.raises(BadDataset) as caught:
        drawn(1, capabilities=text, **options)
    assert caught.value.message == f"{flag} has no use: requests of this endpoint type take text alone"
    assert kind in caught.value.hints[0]


def test_a_tokenizer_for_answers_alone_makes_no_texts() -> None:
    hearing = Capabilities(path="/transcriptions", media_in=("audio",), tokens_streamed=True)
    (one,) = Synthetic(SyntheticOptions(audio_length_mean=1.0), context(1, capabilities=hearing))
    assert (one.turns[0].texts, len(one.turns[0].media)) == ((), 1)
    with pytest.raises(BadDataset, match="--isl has no use: this endpoint type takes no text"):
        Synthetic(SyntheticOptions(isl=5, audio_length_mean=1.0), context(1, capabilities=hearing))


def test_text_options_are_refused_where_text_is_not_taken() -> None:
    retrieval = Capabilities(path="/infer", media_in=("image",))
    with pytest.raises(BadDataset, match="--isl has no use: this endpoint type takes no text"):
        Synthetic(SyntheticOptions(isl=5, **SMALL), context(1, capabilities=retrieval))
    with pytest.raises(BadDataset) as caught:
        Synthetic(SyntheticOptions(), context(1, capabilities=retrieval))
    assert "--image-width-mean 512" in caught.value.hints[0]


# Distributions


def test_sizes_of_pictures_have_their_distributions() -> None:
    wide = '{"points": [{"value": 9}, {"value": 30}]}'
    sizes = {picture(one).size for one in drawn(40, image_width_distribution=wide, image_height_mean=12.0)}
    assert sizes == {(9, 12), (30, 12)}
    tall = drawn(60, image_width_mean=4.0, image_height_distribution='{"mean": 20, "median": 12}')
    assert len({picture(one).height for one in tall}) > 15
    assert picture(drawn(1, image_width_distribution="6")[0]).size == (6, 512)


def test_lengths_of_clips_have_their_distribution() -> None:
    shape = '{"peaks": [{"mean": 0.1, "stddev": 0.01, "max": 0.1}, {"value": 0.3}], "min": 0.09}'
    seconds = [clip(one).getnframes() / 16000 for one in drawn(60, audio_length_distribution=shape)]
    assert 0.3 in seconds
    assert 0.1 in seconds
    assert all(0.09 <= one <= 0.1 or one == 0.3 for one in seconds)
    assert clip(drawn(1, audio_length_distribution="0")[0]).getnframes() == 160  # a hundredth of a second is the least


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"image_width_distribution": "7", "image_width_mean": 5.0}, "--image-width-distribution and --image-width-mean"),
        ({"audio_length_distribution": "7", "audio_length_stddev": 5.0}, "--audio-length-stddev exclude each other"),
        (
            {"image_width_distribution": '{"mean": 3000, "median": 900}'},
            "--image-width-distribution and --image-height-mean: a picture may be 446,599 pixels long",
        ),
        ({"audio_length_distribution": '{"value": 90000}'}, "--audio-length-distribution: a clip of 90000 s has up to"),
    ],
)
def test_distributions_of_media_that_cannot_be_drawn_are_sentences(options: dict[str, Any], said: str) -> None:
    assert said in sentence(**options)
