"""The accuracy benchmark MATH-500."""
