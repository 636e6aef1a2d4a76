"""The grader lighteval_gsm8k."""
