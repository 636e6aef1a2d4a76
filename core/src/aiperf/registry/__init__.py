"""What is installed, hooks at run time, and the options of plugins."""
