"""The accuracy benchmark MMLU."""
