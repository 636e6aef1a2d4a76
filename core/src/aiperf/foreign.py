"""All names that the kernel has of other packages, and of plugins that it asks for by name: doors, and defaults of options.

Elsewhere it selects plugins by what their manifests declare.
"""

from __future__ import annotations

RESULTS, TESTING, SUITE = "aiperf_results", "aiperf_testing", "aiperf-suite"
"""Modules behind two doors of the kernel, and the package that brings all others: nothing else names another package."""

ENDPOINT, TRANSPORT, URL_STRATEGY, RAMP = "chat", "kernel", "round_robin", "linear"
"""``--endpoint-type``, ``--transport``, ``--url-strategy`` and ``--ramp``."""
DATASET = "synthetic"
"""Where no option names a data set or a file."""
SAMPLER = "sequential"
"""``--dataset-sampling-strategy`` of data sets that prefer no other, and of traces."""
TOKENIZER = "builtin"
"""``--tokenizer`` of models that are placeholders; it needs no download."""
BURST, REQUEST_RATE, FIXED_SCHEDULE, USER_CENTRIC = "burst", "request_rate", "fixed_schedule", "user_centric"
"""``--scheduling-mode`` where other options say what the load follows: free slots, a rate, a trace, users."""
ARRIVALS, SHAPED_ARRIVALS = "poisson", "gamma"
"""``--arrival-pattern`` without and with ``--arrival-smoothness``."""
PLANNER, SCENARIOS = "grid", "scenarios"
"""``--sweep-type`` without the option, and with ``--variant``."""
DISPLAY, NO_DISPLAY = "simple", "none"
"""``--ui`` on a terminal, or with more of the log, and elsewhere."""
