"""Planners that list the cells of a sweep, and end the repeats of a cell when they agree."""
