"""Weka traces: recorded agents with the blocks of their prompts."""
