"""The grader lighteval_gpqa."""
