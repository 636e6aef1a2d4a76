"""Starting child processes, and talking to them."""
