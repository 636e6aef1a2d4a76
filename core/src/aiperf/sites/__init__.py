"""Sites: the other machines of a run, what they get, what comes back, and their clocks."""
