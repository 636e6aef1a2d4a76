"""speed_bench: questions of SPEED-Bench, a benchmark of speculative decoding; every message of a row is a turn."""
