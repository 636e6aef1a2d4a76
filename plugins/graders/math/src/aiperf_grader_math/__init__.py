"""The grader math."""
