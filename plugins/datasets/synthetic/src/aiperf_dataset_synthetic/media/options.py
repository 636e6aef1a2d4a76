"""Options of pictures, sound and films beside the text, and what excludes what."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from aiperf.sdk.options import Finite, Options, Word, option

from aiperf_dataset_synthetic.distributions import Distribution, Readable, distribution

MOST_PIXELS = 64_000_000
"""Of a picture or a frame; each takes three bytes of memory a pixel, several times."""
MOST_SIDE = 65_500
"""The longest side that JPEG and Pillow write."""
MOST_BYTES = 256 << 20
"""Of a clip before it is encoded."""
DEVIATIONS = 4.0
"""Sizes and lengths are drawn again where they are farther above the mean."""
SIDE, LENGTH_S = 512.0, 10.0
"""The other side where one is given, and the length of a clip where none is."""
SOURCES = ("noise", "assets")
MP3_RATES = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000)
"""The rates of MPEG-1, 2 and 2.5 (ISO 11172-3, 13818-3), in Hz."""
_DEPTHS = (8, 16, 24, 32)
_IMAGES, _AUDIO, _VIDEO = "Images", "Audio", "Video"
_KHZ = 96.0
"""A rate above this is in Hz."""
_HZ = (1000, 384_000)


def hertz(rate: float) -> int:
    """A sample rate as typed, in Hz: in kHz up to 96, above in Hz."""
    return round(rate * 1000) if rate <= _KHZ else round(rate)


class MediaOptions(Options):
    """What stands beside the text of each turn: pictures, sound and films."""

    image_width_mean: Finite = option("--image-width-mean", default=0.0, ge=0, group=_IMAGES, metavar="PX",
        shown="no pictures", place="dataset.images.width.mean",
        help="Mean width of a picture; where only the height is given, 512.")
    image_width_stddev: Finite = option("--image-width-stddev", default=0.0, ge=0, group=_IMAGES, metavar="PX", shown="0",
        place="dataset.images.width.stddev", help="Spread of the width, normal.")
    image_width_distribution: Readable | None = option("--image-width-distribution", group=_IMAGES, metavar="JSON",
        place="dataset.images.width.distribution", help="Distribution of the width, with the keys of --isl-distribution.")
    image_height_mean: Finite = option("--image-height-mean", default=0.0, ge=0, group=_IMAGES, metavar="PX",
        shown="no pictures", place="dataset.images.height.mean",
        help="Mean height of a picture; where only the width is given, 512.")
    image_height_stddev: Finite = option("--image-height-stddev", default=0.0, ge=0, group=_IMAGES, metavar="PX", shown="0",
        place="dataset.images.height.stddev", help="Spread of the height, normal.")
    image_height_distribution: Readable | None = option("--image-height-distribution", group=_IMAGES, metavar="JSON",
        place="dataset.images.height.distribution", help="Distribution of the height, with the keys of --isl-distribution.")
    image_batch_size: int = option("--image-batch-size", "--batch-size-image", default=1, ge=0, group=_IMAGES, metavar="INT",
        place="dataset.images.batch_size", help="Pictures in one request; 0 switches them off.")
    image_format: Word = option("--image-format", default="jpeg", choices=("png", "jpeg", "random"), group=_IMAGES,
        place="dataset.images.format", help="Format of pictures; random draws one for each picture.")
    image_source: str = option("--image-source", default="noise", group=_IMAGES, metavar="SOURCE",
        place="dataset.images.source",
        help="What is shown: noise, assets (four drawings), or the pictures of a directory, resized.")
    image_source_sampling: Word = option("--image-source-sampling", default="random_with_replacement",
        choices=("random_with_replacement", "shuffle_cycle", "sequential_cycle"), group=_IMAGES,
        place="dataset.images.source_sampling", help="Order in which the pictures of assets or of a directory are used.")

    audio_length_mean: Finite = option("--audio-length-mean", default=0.0, ge=0, group=_AUDIO, metavar="SECONDS",
        shown="no sound; 10 with --audio-batch-size alone", place="dataset.audio.length.mean", help="Mean length of a clip.")
    audio_length_stddev: Finite = option("--audio-length-stddev", default=0.0, ge=0, group=_AUDIO, metavar="SECONDS", shown="0",
        place="dataset.audio.length.stddev", help="Spread of the length of a clip, normal.")
    audio_length_distribution: Readable | None = option("--audio-length-distribution", group=_AUDIO, metavar="JSON",
        place="dataset.audio.length.distribution",
        help="Distribution of the length of a clip, in seconds, with the keys of --isl-distribution.")
    audio_batch_size: int = option("--audio-batch-size", "--batch-size-audio", default=1, ge=0, group=_AUDIO, metavar="INT",
        place="dataset.audio.batch_size", help="Clips in one request; 0 switches them off.")
    audio_format: Word = option("--audio-format", default="wav", choices=("wav", "mp3", "random"), group=_AUDIO,
        place="dataset.audio.format", help="Format of clips; random draws one for each clip. mp3 needs aiperf-suite[audio].")
    audio_depths: list[int] = option("--audio-depths", default=[16], min_length=1, group=_AUDIO, metavar="BITS",
        place="dataset.audio.depths", help="Bits of a sample: 8, 16, 24, 32; of several each clip draws one. mp3 has none.")
    audio_sample_rates: list[Finite] = option("--audio-sample-rates", default=[16.0], min_length=1, group=_AUDIO,
        metavar="KHZ", shown="16", place="dataset.audio.sample_rates",
        help="Samples in a second, in kHz, above 96 in Hz; of several each clip draws one.")
    audio_channels: int = option("--audio-num-channels", default=1, ge=1, le=2, group=_AUDIO, metavar="INT",
        place="dataset.audio.channels", help="Channels of a clip: 1 or 2.")

    video_width: int = option("--video-width", default=0, ge=0, group=_VIDEO, metavar="PX", shown="no films",
        place="dataset.video.width", help="Width of a film, with --video-height. Films need aiperf-suite[video].")
    video_height: int = option("--video-height", default=0, ge=0, group=_VIDEO, metavar="PX", shown="no films",
        place="dataset.video.height", help="Height of a film, with --video-width.")
    video_duration: Finite = option("--video-duration", default=1.0, gt=0, le=3600, group=_VIDEO, metavar="SECONDS", shown="1",
        place="dataset.video.duration", help="Length of a film.")
    video_fps: int = option("--video-fps", default=4, ge=1, le=240, group=_VIDEO, metavar="INT", place="dataset.video.fps",
        help="Frames in a second.")
    video_batch_size: int = option("--video-batch-size", "--batch-size-video", default=1, ge=0, group=_VIDEO, metavar="INT",
        place="dataset.video.batch_size", help="Films in one request; 0 switches them off.")
    video_synth_type: Word = option("--video-synth-type", default="moving_shapes",
        choices=("moving_shapes", "grid_clock", "noise"), group=_VIDEO, place="dataset.video.synth_type",
        help="What a film shows.")
    video_format: Word = option("--video-format", default="webm", choices=("webm", "mp4"), group=_VIDEO,
        place="dataset.video.format", help="Container of films.")
    video_codec: str = option("--video-codec", default="libvpx-vp9", group=_VIDEO, metavar="NAME", place="dataset.video.codec",
        help="Encoder of films, by FFmpeg's name.")
    video_audio_channels: int = option("--video-audio-num-channels", default=0, ge=0, le=2, group=_VIDEO, metavar="INT",
        place="dataset.video.audio.channels", help="Channels of a film's sound: 1 or 2; 0 is a silent film.")
    video_audio_sample_rate: Finite = option("--video-audio-sample-rate", default=44.1, gt=0, group=_VIDEO, metavar="KHZ",
        place="dataset.video.audio.sample_rate", help="Samples of the sound in a second, in kHz, above 96 in Hz.")
    video_audio_depth: int = option("--video-audio-depth", default=16, group=_VIDEO, metavar="BITS",
        place="dataset.video.audio.depth", help="Bits of a sample of the sound before it is encoded: 8, 16, 24, 32.")
    video_audio_codec: Word | None = option("--video-audio-codec", choices=("aac", "libvorbis", "libopus"), group=_VIDEO,
        shown="libvorbis or libopus, by what there is", place="dataset.video.audio.codec", help="Encoder of the sound.")

    @property
    def pictures(self) -> int:
        """Pictures of a turn."""
        sides = {"image_width_mean": self.image_width_mean, "image_height_mean": self.image_height_mean}
        off = any(field in self.fields_set and not mean for field, mean in sides.items())
        wanted = any(sides.values()) or any(self.picture_shapes)
        return self.image_batch_size if wanted and not off else 0

    @property
    def clips(self) -> int:
        """Clips of a turn."""
        if self.audio_length_distribution is not None:
            return self.audio_batch_size
        wanted = self.audio_length_mean > 0 if "audio_length_mean" in self.fields_set else bool(
            self.fields_set & {"audio_length_stddev", "audio_batch_size"}
        )  # fmt: skip
        return self.audio_batch_size if wanted else 0

    @property
    def films(self) -> int:
        """Films of a turn."""
        return self.video_batch_size if self.video_width and self.video_height else 0

    @property
    def picture_sides(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Mean and deviation of width and height, in pixels."""
        width, height = self.image_width_mean or SIDE, self.image_height_mean or SIDE
        return (width, self.image_width_stddev), (height, self.image_height_stddev)

    @property
    def picture_shapes(self) -> tuple[Distribution | None, Distribution | None]:
        """The distributions of width and height, in pixels; None where a mean and a deviation say it."""
        width, height = self.image_width_distribution, self.image_height_distribution
        return distribution(width) if width is not None else None, distribution(height) if height is not None else None

    @property
    def clip_shape(self) -> Distribution | None:
        """The distribution of the length of clips, in s; None where a mean and a deviation say it."""
        return distribution(self.audio_length_distribution) if self.audio_length_distribution is not None else None

    @property
    def clip_length_s(self) -> float:
        """Mean length of a clip."""
        return self.audio_length_mean or LENGTH_S

    @property
    def clip_rates(self) -> list[int]:
        """Sample rates of clips, in Hz."""
        return [hertz(rate) for rate in self.audio_sample_rates]

    def media(self) -> dict[str, tuple[int, str]]:
        """How many media of each kind a turn has, and the option that asks for them; without the kinds it has none of."""
        asks = {
            "image": (
                self.pictures,
                ("image_width_mean", "image_height_mean", "image_width_distribution", "image_height_distribution"),
            ),
            "audio": (
                self.clips, ("audio_length_distribution", "audio_length_mean", "audio_length_stddev", "audio_batch_size")
            ),
            "video": (self.films, ("video_width",)),
        }
        return {
            kind: (count, _flag(next(field for field in fields if field in self.fields_set)))
            for kind, (count, fields) in asks.items() if count
        }  # fmt: skip

    def media_problems(self, typed: dict[str, str]) -> list[str]:
        """What can't be drawn: a sentence and its hint each, on lines of their own; *typed* is the flag typed, by field."""
        given = {field: typed.get(field, _flag(field)) for field in self.fields_set if field in MediaOptions.option_faces}
        return [*_doubled(given), *self._picture_problems(given), *self._clip_problems(given), *self._film_problems(given)]

    def _picture_problems(self, given: dict[str, str]) -> Iterable[str]:
        source = self.image_source
        if not self.pictures:
            off = ("image_width_mean", "image_height_mean", "image_batch_size")
            if not any(field in given and not getattr(self, field) for field in off):
                yield from _unused(given, "image_", "--image-width-mean", "there are no pictures without a size")
            return
        (width, wide), (height, high) = self.picture_sides
        shapes = self.picture_shapes
        largest = (
            shapes[0].largest if shapes[0] is not None else width + DEVIATIONS * wide,
            shapes[1].largest if shapes[1] is not None else height + DEVIATIONS * high,
        )
        yield from _too_large("a picture", largest, f"{_sizing(given, 'image_width')} and {_sizing(given, 'image_height')}")
        if "image_source_sampling" in given and source == "noise":
            yield (
                f"{given['image_source_sampling']} has no use: no two pictures of noise are the same\n"
                "choose --image-source assets or a directory, or drop it"
            )
        if source not in SOURCES and not Path(source).is_dir():
            near = get_close_matches(source.lower(), SOURCES, 1)
            hint = f"did you mean {near[0]}?" if near else "give the path of a directory with pictures, noise or assets"
            yield f"--image-source: {source!r} is neither noise nor assets nor a directory\n{hint}"

    def _clip_problems(self, given: dict[str, str]) -> Iterable[str]:
        if not self.clips:
            if not any(field in given and not getattr(self, field) for field in ("audio_length_mean", "audio_batch_size")):
                yield from _unused(given, "audio_", "--audio-length-mean", "there is no sound without a length")
            return
        yield from _bad_depths("--audio-depths", self.audio_depths)
        yield from _bad_rates("--audio-sample-rates", self.clip_rates)
        no_mp3 = sorted({rate for rate in self.clip_rates if rate not in MP3_RATES})
        if self.audio_format != "wav" and no_mp3:
            rates = ", ".join(f"{rate / 1000:g}" for rate in MP3_RATES)
            yield (
                f"--audio-sample-rates: MP3 has no rate of {no_mp3[0] / 1000:g} kHz, but {rates}\n"
                "choose another rate, or --audio-format wav"
            )
        shape = self.clip_shape
        longest_s = self.clip_length_s + DEVIATIONS * self.audio_length_stddev if shape is None else shape.largest
        size = longest_s * max(self.clip_rates) * self.audio_channels * max(self.audio_depths) / 8
        if size > MOST_BYTES:
            yield (
                f"{_sizing(given, 'audio_length')}: a clip of {longest_s:g} s has up to {size / 2**20:,.0f} MiB, and the most"
                f" is {MOST_BYTES >> 20}\nask for less"
            )

    def _film_problems(self, given: dict[str, str]) -> Iterable[str]:
        sides = {"video_width": self.video_width, "video_height": self.video_height}
        lone = [field for field, side in sides.items() if side]
        if len(lone) == 1 and self.video_batch_size:
            (other,) = sides.keys() - lone
            yield f"{_flag(lone[0])} needs {_flag(other)}: a film has both sides\nadd {_flag(other)}, or drop {_flag(lone[0])}"
            return
        if not self.films:
            if not any(field in given and not getattr(self, field) for field in (*sides, "video_batch_size")):
                yield from _unused(given, "video_", "--video-width and --video-height", "there are no films without a size")
            return
        yield from _too_large("a frame", (self.video_width, self.video_height), "--video-width and --video-height")
        if self.video_audio_channels == 0:
            for field in ("video_audio_sample_rate", "video_audio_depth", "video_audio_codec"):
                if flag := given.get(field):
                    yield f"{flag} has no use: the film is silent\nadd --video-audio-num-channels, or drop {flag}"
            return
        yield from _bad_depths("--video-audio-depth", [self.video_audio_depth])
        yield from _bad_rates("--video-audio-sample-rate", [hertz(self.video_audio_sample_rate)], (8000, 96_000))
        codecs = {"webm": ("libvorbis", "libopus"), "mp4": ("aac", "libopus")}[self.video_format]
        if self.video_audio_codec is not None and self.video_audio_codec not in codecs:
            yield (
                f"--video-audio-codec: {self.video_format} takes no sound of {self.video_audio_codec}, but of"
                f" {' and '.join(codecs)}\nchoose one of them, or another --video-format"
            )


def _flag(field: str) -> str:
    return MediaOptions.option_faces[field].spec.flags[0]


def _sizing(given: dict[str, str], what: str) -> str:
    """The option that says a size: its distribution where there is one, else its mean."""
    return given.get(f"{what}_distribution") or _flag(f"{what}_mean")


def _doubled(given: dict[str, str]) -> Iterable[str]:
    """The fault of a size with a distribution and a mean or a deviation: both say it."""
    for what in ("image_width", "image_height", "audio_length"):
        whole = given.get(f"{what}_distribution")
        for other in (given.get(f"{what}_mean"), given.get(f"{what}_stddev")):
            if whole is not None and other is not None:
                yield f"{whole} and {other} exclude each other: the distribution says every size\ndrop {whole} or {other}"


def _unused(given: dict[str, str], prefix: str, needed: str, why: str) -> Iterable[str]:
    for field in sorted(given):
        if field.startswith(prefix):
            yield f"{given[field]} needs {needed}: {why}\nadd {needed}, or drop {given[field]}"
            return


def _too_large(what: str, sides: tuple[float, float], flags: str) -> Iterable[str]:
    width, height = sides
    if max(sides) > MOST_SIDE:
        yield f"{flags}: {what} may be {max(sides):,.0f} pixels long, and the most is {MOST_SIDE:,}\nask for less"
    elif width * height > MOST_PIXELS:
        size = f"{width:,.0f} x {height:,.0f} pixels, {width * height / 1e6:,.0f} megapixels"
        yield f"{flags}: {what} may have {size}, and the most is {MOST_PIXELS // 1_000_000}\nask for less"


def _bad_depths(flag: str, depths: list[int]) -> Iterable[str]:
    for depth in depths:
        if depth not in _DEPTHS:
            yield f"{flag}: a sample has no {depth} bits\nchoose among {', '.join(map(str, _DEPTHS))}"


def _bad_rates(flag: str, rates: list[int], limits: tuple[int, int] = _HZ) -> Iterable[str]:
    for rate in rates:
        if not limits[0] <= rate <= limits[1]:
            yield f"{flag}: {rate:,} Hz is out of the range of {limits[0]:,} to {limits[1]:,}\ngive kHz, or Hz above 96"
