"""The {{ cookiecutter.name }} metric: how long the server takes to say anything at all."""

from __future__ import annotations

from aiperf import Column, Metric, RecordBatch, Unit


class {{ cookiecutter.__class }}(Metric):
    """From the first byte of the request to the answer's headers; absent if none came.

    Of ``aiperf.sdk.metric``: ``PluginUnit`` for another unit, ``Needs.NUMBERS`` for numbers of an endpoint's answers,
    ``PluginFold`` for a statistic of its own, and ``RunMetric`` for what other metrics, analyses and telemetry give together.
    ``by = ("model",)`` gives the metric for each model, too, and ``("task",)`` for each task of a benchmark.
    """

    tag = "{{ cookiecutter.__key }}"
    title = "{{ cookiecutter.__title }}"
    unit = Unit.NANOSECONDS
    display = Unit.MILLISECONDS
    order = 900

    def column(self, batch: RecordBatch) -> Column:
        return batch["ack_ns"] - batch["sent_ns"]  # NaN where there was none
