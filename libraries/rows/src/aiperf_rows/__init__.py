"""Files of rows, read lazily."""
