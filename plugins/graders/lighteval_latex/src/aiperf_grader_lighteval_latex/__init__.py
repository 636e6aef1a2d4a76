"""The grader lighteval_latex."""
