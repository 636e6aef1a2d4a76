"""The accuracy benchmark BIG-Bench Hard."""
