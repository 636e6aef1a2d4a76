"""What plots share: loads and repeats of runs, requests over time, slots, and the reference's types of pictures."""
