"""The measuring loop and its processes."""
