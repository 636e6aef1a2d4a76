"""The grader exact_match."""
