"""Jinja2 templates of strangers, rendered with bounds of time and size."""
