"""The grader code_execution."""
