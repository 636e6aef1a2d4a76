"""Riddles by subject, chosen by name, and a jury that takes its time."""
