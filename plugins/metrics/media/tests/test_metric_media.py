from importlib.metadata import entry_points

import numpy as np
import pytest
from aiperf import Metric, RecordBatch, Unit
from aiperf.testing import MetricContract
from aiperf.testing.batches import columns_of
from aiperf.testing.manifests import check_row
from aiperf_metric_media import ImageLatency, ImageThroughput, NumImages

ABSENT = float("nan")


class Latency(Metric):
    """Stands for another package's metric of this name."""

    tag = "request_latency"
    title = "Request Latency"
    unit = Unit.NANOSECONDS

    def column(self, batch):
        return batch["last_token_ns"] - batch["started_ns"]


NEEDED = (NumImages(), Latency())


class TestTheNumberKeepsTheContract(MetricContract):
    metric = NumImages()


class TestTheThroughputKeepsTheContract(MetricContract):
    metric = ImageThroughput()
    needed = NEEDED


class TestTheLatencyKeepsTheContract(MetricContract):
    metric = ImageLatency()
    needed = NEEDED


# 4 pictures in 0.5 s, none, 1 in 2 s, 2 in no time.
WORKED = {
    "num_images": [4, None, 1, 2],
    "image_throughput": [8, None, 0.5, None],  # no time, no rate
    "image_latency": [125, None, 2000, 0],
}


@pytest.mark.parametrize("metric", [NumImages(), ImageThroughput(), ImageLatency()], ids=lambda metric: metric.tag)
def test_values_are_those_worked_out_by_hand(metric):
    known = {
        "images": np.array([4.0, 0.0, 1.0, 2.0]),
        "started_ns": np.zeros(4),
        "last_token_ns": np.array([0.5e9, 1e9, 2e9, 0.0]),
    }
    found = columns_of((*NEEDED, metric), RecordBatch(known, np.ones(4, dtype=bool)))[metric.tag]
    assert [None if np.isnan(each) else float(each) for each in found] == WORKED[metric.tag]


def test_readers_of_the_references_files_find_what_they_know():
    kinds = (NumImages, ImageThroughput, ImageLatency)
    assert [(kind.title, kind.unit.value, kind.order, kind.larger_is_better) for kind in kinds] == [
        ("Number of Images", "images", None, False),
        ("Image Throughput", "images/sec", 860, False),
        ("Image Latency", "ms/image", 861, False),
    ]


def test_every_metric_is_registered_under_its_tag_and_described():
    registered = {each.name: each.load() for each in entry_points(group="aiperf.metrics") if "metric_media" in each.value}
    assert registered == {kind.tag: kind for kind in (NumImages, ImageThroughput, ImageLatency)}
    for kind in registered.values():
        check_row("metrics", kind)
