"""Agentic replay: lanes of recorded trees of conversations, cut in their middle."""
