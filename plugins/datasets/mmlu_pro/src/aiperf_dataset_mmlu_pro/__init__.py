"""The accuracy benchmark MMLU-Pro."""
