"""The accuracy benchmark GSM8K."""
