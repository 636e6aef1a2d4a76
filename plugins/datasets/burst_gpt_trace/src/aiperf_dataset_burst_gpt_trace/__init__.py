"""burst_gpt_trace: a table of recorded requests, with times and lengths."""
