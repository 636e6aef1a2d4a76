"""Several runs of one command: repeats of a load, and cells of a sweep."""
