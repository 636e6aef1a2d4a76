"""Metrics by OpenTelemetry while a run goes on.

Reducers import :mod:`aiperf_exporter_otel.batches`, the run :mod:`aiperf_exporter_otel.streaming`, and only where the option
asks for it; OpenTelemetry's SDK is imported by :mod:`aiperf_exporter_otel.process` alone.
"""
