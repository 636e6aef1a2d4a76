"""Synthetic conversations: each entry is a function of the seed and its number alone."""
