"""The accuracy benchmark LiveCodeBench."""
