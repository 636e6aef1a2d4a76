"""Graders that don't compare texts: a model judges, and calls of tools are looked at."""
