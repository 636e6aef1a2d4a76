"""A package that takes what others have: flags, places in configuration files, time and threads."""
