"""Columns to a summary."""
