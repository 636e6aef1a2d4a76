"""The grader mmlu_pro."""
