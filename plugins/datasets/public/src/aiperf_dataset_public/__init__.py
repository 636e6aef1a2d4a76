"""Public data sets: each is a row of the manifest, which says where it is and what its columns mean."""
