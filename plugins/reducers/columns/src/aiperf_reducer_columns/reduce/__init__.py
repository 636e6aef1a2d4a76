"""Journal to columns."""
