"""The parent process of a run."""
