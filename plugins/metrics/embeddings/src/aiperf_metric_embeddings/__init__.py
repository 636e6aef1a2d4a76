"""The length of vectors, and whether all of a run have one."""
