"""Images, sound and films, in requests and in answers, and the time that they took."""

from __future__ import annotations

import numpy as np
from aiperf import Column, Metric, Needs, RecordBatch, Unit
from aiperf.sdk.metric import PluginUnit
from numpy.typing import NDArray

MADE_IMAGES, MADE_SOUND, INFERENCE_TIME, PEAK_MEMORY = "made_images", "made_sound_s", "inference_time_s", "peak_memory_mb"
"""Numbers of endpoints (``Endpoint.numbers``) that make images, sound and films."""
MEGABYTES = PluginUnit("MB", "size", 1024.0**2)


class NumImages(Metric):
    """Images in the request, those of earlier turns included; of an endpoint that makes images, those in the answer; absent
    without images."""

    tag = "num_images"
    title = "Number of Images"
    unit = Unit.IMAGES

    def column(self, batch: RecordBatch) -> Column:
        images = batch[MADE_IMAGES if MADE_IMAGES in batch.columns else "images"]
        return np.where(images > 0, images, np.nan)


class ImageThroughput(Metric):
    """Images per second of request latency."""

    tag = "image_throughput"
    title = "Image Throughput"
    unit = Unit.IMAGES_PER_SECOND
    needs = ("num_images", "request_latency")
    order = 860

    def column(self, batch: RecordBatch) -> Column:
        return _quotient(batch["num_images"], batch["request_latency"] / 1e9)


class ImageLatency(Metric):
    """Request latency per image."""

    tag = "image_latency"
    title = "Image Latency"
    unit = Unit.MILLISECONDS_PER_IMAGE
    needs = ("num_images", "request_latency")
    order = 861

    def column(self, batch: RecordBatch) -> Column:
        return batch["request_latency"] / 1e6 / batch["num_images"]


class AudioDuration(Metric):
    """Length of the sound in the turn, by the data set or the header of a WAV, FLAC or MP3 file; absent without, or where it
    isn't known."""

    tag = "audio_duration"
    title = "Audio Duration"
    unit = Unit.SECONDS

    def column(self, batch: RecordBatch) -> Column:
        seconds = batch["audio_s"]
        return np.where(seconds > 0, seconds, np.nan)


class InverseRealTimeFactor(Metric):
    """Seconds of sound per second of request latency: above 1 the server is faster than the sound."""

    tag = "rtfx"
    title = "Inverse Real-Time Factor (RTFx)"
    unit = Unit.RATIO
    needs = ("audio_duration", "request_latency")
    larger_is_better = True
    order = 850

    def column(self, batch: RecordBatch) -> Column:
        return _quotient(batch["audio_duration"], batch["request_latency"] / 1e9)


class TimeToFirstImage(Metric):
    """From the start to the first event with an image, partial ones included; bounded where it was merged with later ones."""

    tag = "time_to_first_image"
    title = "Time to First Image"
    unit = Unit.NANOSECONDS
    display = Unit.MILLISECONDS
    needs = (MADE_IMAGES,)
    requires = Needs.STREAMING | Needs.NUMBERS
    order = 100
    since = "started_ns"
    early = True
    rises = ("first_token_ns",)

    def column(self, batch: RecordBatch) -> Column:
        return batch["first_token_ns"] - batch["started_ns"]


class TimeToFirstAudio(Metric):
    """From the start to the first sound: the first byte behind the header of the format, or the first event with sound.

    Bounded where it was merged with later sound.
    """

    tag = "time_to_first_audio"
    title = "Time to First Audio"
    unit = Unit.NANOSECONDS
    display = Unit.MILLISECONDS
    needs = (MADE_SOUND,)
    requires = Needs.NUMBERS
    order = 100
    since = "started_ns"
    early = True
    rises = ("first_token_ns",)

    def column(self, batch: RecordBatch) -> Column:
        return batch["first_token_ns"] - batch["started_ns"]


class GeneratedAudioDuration(Metric):
    """Length of the sound in the answer, by the header of its format and the number of its bytes; absent where not known."""

    tag = "generated_audio_duration"
    title = "Generated Audio Duration"
    unit = Unit.SECONDS
    needs = (MADE_SOUND,)
    requires = Needs.NUMBERS
    order = 851

    def column(self, batch: RecordBatch) -> Column:
        return batch[MADE_SOUND]


class RealTimeFactor(Metric):
    """Seconds of request latency per second of sound in the answer: below 1 the server speaks faster than it is heard."""

    tag = "real_time_factor"
    title = "Real-Time Factor (RTF)"
    unit = Unit.RATIO
    needs = (MADE_SOUND, "request_latency")
    requires = Needs.NUMBERS
    order = 852

    def column(self, batch: RecordBatch) -> Column:
        return _quotient(batch["request_latency"] / 1e9, batch[MADE_SOUND])


class VideoInferenceTime(Metric):
    """Time that making the film took, as the server says it."""

    tag = "video_inference_time"
    title = "Video Inference Time"
    unit = Unit.SECONDS
    display = Unit.MILLISECONDS
    needs = (INFERENCE_TIME,)
    requires = Needs.NUMBERS
    order = 310

    def column(self, batch: RecordBatch) -> Column:
        return batch[INFERENCE_TIME]


class VideoPeakMemory(Metric):
    """Most memory that making the film took, as the server says it."""

    tag = "video_peak_memory"
    title = "Video Peak Memory"
    unit = MEGABYTES
    needs = (PEAK_MEMORY,)
    requires = Needs.NUMBERS
    order = 311

    def column(self, batch: RecordBatch) -> Column:
        return batch[PEAK_MEMORY]


def _quotient(above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64]:
    """The quotient where *below* is more than 0, absent elsewhere."""
    quotient: NDArray[np.float64] = np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0)
    return quotient
