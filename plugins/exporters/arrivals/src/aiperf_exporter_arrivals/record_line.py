"""The place of the number of a line in the per-request file."""

RECORD_LINE = b"\0"
"""Stands in the parts for a number that is only known when they are joined; no JSON text has this byte."""
