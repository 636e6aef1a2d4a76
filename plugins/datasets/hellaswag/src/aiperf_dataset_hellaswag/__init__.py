"""The accuracy benchmark HellaSwag."""
