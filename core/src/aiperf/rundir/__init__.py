"""A run's directory: journal, stored data set, artifacts."""
