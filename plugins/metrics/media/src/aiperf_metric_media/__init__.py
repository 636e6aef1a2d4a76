"""Images in requests, and the time per image."""

from __future__ import annotations

import numpy as np
from aiperf import Column, Metric, RecordBatch, Unit


class NumImages(Metric):
    """Images in the request, those of earlier turns included; absent without images."""

    tag = "num_images"
    title = "Number of Images"
    unit = Unit.IMAGES

    def column(self, batch: RecordBatch) -> Column:
        images = batch["images"]
        return np.where(images > 0, images, np.nan)


class ImageThroughput(Metric):
    """Images per second of request latency."""

    tag = "image_throughput"
    title = "Image Throughput"
    unit = Unit.IMAGES_PER_SECOND
    needs = ("num_images", "request_latency")
    order = 860

    def column(self, batch: RecordBatch) -> Column:
        latency_s = batch["request_latency"] / 1e9
        rate: Column = np.divide(batch["num_images"], latency_s, out=np.full(len(batch), np.nan), where=latency_s > 0)
        return rate


class ImageLatency(Metric):
    """Request latency per image."""

    tag = "image_latency"
    title = "Image Latency"
    unit = Unit.MILLISECONDS_PER_IMAGE
    needs = ("num_images", "request_latency")
    order = 861

    def column(self, batch: RecordBatch) -> Column:
        return batch["request_latency"] / 1e6 / batch["num_images"]
