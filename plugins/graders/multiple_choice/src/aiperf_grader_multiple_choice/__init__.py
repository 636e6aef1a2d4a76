"""The grader multiple_choice."""
