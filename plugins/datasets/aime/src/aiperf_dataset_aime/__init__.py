"""The accuracy benchmark AIME."""
