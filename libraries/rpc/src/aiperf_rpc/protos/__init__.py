"""Message classes, each module generated from the file beside it."""
