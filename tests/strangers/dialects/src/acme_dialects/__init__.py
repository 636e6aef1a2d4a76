"""Dialects that a decoder of single events can't read."""
