"""baseten_trace: recorded prompts with times, sessions and hashes of blocks, as a table."""
