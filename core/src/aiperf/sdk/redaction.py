"""Secrets out of texts, and files for their owner alone."""

from aiperf.redaction import private, redact, scrubbed, shown_fields, shown_headers, without_secrets

__all__ = ["private", "redact", "scrubbed", "shown_fields", "shown_headers", "without_secrets"]
