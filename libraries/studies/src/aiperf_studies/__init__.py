"""Arithmetic of several runs: confidence, designs of samples, names of cells, best cells, aggregates."""
