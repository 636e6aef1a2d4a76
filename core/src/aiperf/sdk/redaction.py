"""Secrets out of texts, and files for their owner alone."""

from aiperf.redaction import private, scrubbed, shown_headers, without_secrets

__all__ = ["private", "scrubbed", "shown_headers", "without_secrets"]
