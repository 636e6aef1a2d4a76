"""Answers in text: what they say, and whether it equals what was expected.  No module here does I/O but ``engine``."""
