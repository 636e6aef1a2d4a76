"""The grader lighteval_expr."""
