"""Scheduling modes, arrival patterns, ramps, orders of entries and URL strategies: arithmetic without state."""
