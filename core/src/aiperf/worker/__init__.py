"""The measuring loop."""
