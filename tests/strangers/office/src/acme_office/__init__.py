"""A database of all requests, and a token that is renewed while they are sent."""
