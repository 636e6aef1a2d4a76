"""Drivers: behind free slots, at due times, and sessions with start times of their own."""
