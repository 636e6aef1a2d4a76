"""random_pool: files of rows, of which each conversation draws one of every file."""
