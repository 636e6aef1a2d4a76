"""Accuracy benchmarks: their problems, and the form in which they are asked."""
