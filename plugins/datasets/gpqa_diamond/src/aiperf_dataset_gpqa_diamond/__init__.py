"""The accuracy benchmark GPQA Diamond."""
