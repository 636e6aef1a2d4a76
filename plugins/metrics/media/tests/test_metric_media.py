from importlib.metadata import entry_points

import numpy as np
import pytest
from aiperf import Metric, RecordBatch, Unit
from aiperf.testing import MetricContract
from aiperf_metric_media import (
    AudioDuration,
    GeneratedAudioDuration,
    ImageLatency,
    ImageThroughput,
    InverseRealTimeFactor,
    NumImages,
    RealTimeFactor,
    TimeToFirstAudio,
    TimeToFirstImage,
    VideoInferenceTime,
    VideoPeakMemory,
)
from aiperf_testing.batches import columns_of
from aiperf_testing.manifests import check_row

ABSENT = float("nan")


class Latency(Metric):
    """Stands for another package's metric of this name."""

    tag = "request_latency"
    title = "Request Latency"
    unit = Unit.NANOSECONDS

    def column(self, batch):
        return batch["last_token_ns"] - batch["started_ns"]


TAKING = (NumImages, ImageThroughput, ImageLatency, AudioDuration, InverseRealTimeFactor)
MAKING = (
    TimeToFirstImage, TimeToFirstAudio, GeneratedAudioDuration, RealTimeFactor, VideoInferenceTime, VideoPeakMemory,
)  # fmt: skip
KINDS = (*TAKING, *MAKING)
NEEDED = (NumImages(), AudioDuration(), Latency())


class TestTheNumberKeepsTheContract(MetricContract):
    metric = NumImages()


class TestTheThroughputKeepsTheContract(MetricContract):
    metric = ImageThroughput()
    needed = NEEDED


class TestTheLatencyKeepsTheContract(MetricContract):
    metric = ImageLatency()
    needed = NEEDED


class TestTheDurationKeepsTheContract(MetricContract):
    metric = AudioDuration()


class TestTheFactorKeepsTheContract(MetricContract):
    metric = InverseRealTimeFactor()
    needed = NEEDED


class TestTheFirstImageKeepsTheContract(MetricContract):
    metric = TimeToFirstImage()


class TestTheFirstSoundKeepsTheContract(MetricContract):
    metric = TimeToFirstAudio()


class TestTheSoundMadeKeepsTheContract(MetricContract):
    metric = GeneratedAudioDuration()


class TestTheFactorOfSpeechKeepsTheContract(MetricContract):
    metric = RealTimeFactor()
    needed = NEEDED


class TestTheInferenceTimeKeepsTheContract(MetricContract):
    metric = VideoInferenceTime()


class TestThePeakMemoryKeepsTheContract(MetricContract):
    metric = VideoPeakMemory()


# Requests: 4 pictures in 0.5 s, none, 1 in 2 s, 2 in no time; 10 s of sound, none, unknown, 3 s.
REQUESTS = {
    "images": np.array([4.0, 0.0, 1.0, 2.0]),
    "audio_s": np.array([10.0, 0.0, ABSENT, 3.0]),
    "started_ns": np.zeros(4),
    "last_token_ns": np.array([0.5e9, 1e9, 2e9, 0.0]),
}
# Answers, whole after 0.5, 1 and 2 s: 3 images or 4 s of sound, the first after 0.2 s; 0.5 s of sound; an unknown length.
ANSWERS = {
    "images": np.array([1.0, 1.0, 1.0]),
    "audio_s": np.full(3, ABSENT),
    "made_images": np.array([3.0, ABSENT, ABSENT]),
    "made_sound_s": np.array([4.0, 0.5, ABSENT]),
    "inference_time_s": np.array([7.5, ABSENT, 2.0]),
    "peak_memory_mb": np.array([20480.0, ABSENT, 1.0]),
    "started_ns": np.zeros(3),
    "first_token_ns": np.array([0.2e9, ABSENT, 1e9]),
    "last_token_ns": np.array([0.5e9, 1e9, 2e9]),
}
WORKED = {
    "num_images": [4, None, 1, 2],
    "image_throughput": [8, None, 0.5, None],  # no time, no rate
    "image_latency": [125, None, 2000, 0],
    "audio_duration": [10, None, None, 3],
    "rtfx": [20, None, None, None],
    # of answers
    "time_to_first_image": [0.2e9, None, 1e9],
    "time_to_first_audio": [0.2e9, None, 1e9],
    "generated_audio_duration": [4, 0.5, None],
    "real_time_factor": [0.125, 2, None],  # 0.5 s / 4 s, 1 s / 0.5 s
    "video_inference_time": [7.5, None, 2],
    "video_peak_memory": [20480, None, 1],
}


def values(metric, known):
    batch = RecordBatch(known, np.ones(len(known["images"]), dtype=bool))
    return [None if np.isnan(each) else float(each) for each in columns_of((*NEEDED, metric), batch)[metric.tag]]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.tag)
def test_values_are_those_worked_out_by_hand(kind):
    assert values(kind(), REQUESTS if kind in TAKING else ANSWERS) == WORKED[kind.tag]


def test_images_of_an_answer_count_instead_of_those_asked_with():
    assert values(NumImages(), ANSWERS) == [3, None, None]
    assert values(ImageThroughput(), ANSWERS) == [6, None, None]


def test_readers_of_the_references_files_find_what_they_know():
    assert [(kind.title, kind.unit.value, kind.order, kind.larger_is_better) for kind in TAKING] == [
        ("Number of Images", "images", None, False),
        ("Image Throughput", "images/sec", 860, False),
        ("Image Latency", "ms/image", 861, False),
        ("Audio Duration", "sec", None, False),
        ("Inverse Real-Time Factor (RTFx)", "ratio", 850, True),
    ]


def test_every_metric_is_registered_under_its_tag_and_described():
    registered = {each.name: each.load() for each in entry_points(group="aiperf.metrics") if "metric_media" in each.value}
    assert registered == {kind.tag: kind for kind in KINDS}
    for kind in registered.values():
        check_row("metrics", kind)
