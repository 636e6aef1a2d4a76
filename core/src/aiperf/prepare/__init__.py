"""Builds data set, due times, session starts and ramped limits before load."""
