"""Secrets out of texts, and files for their owner alone."""

from aiperf.redaction import private, redact, redact_json, scrubbed, shown_fields, shown_headers, without_secrets

__all__ = ["private", "redact", "redact_json", "scrubbed", "shown_fields", "shown_headers", "without_secrets"]
