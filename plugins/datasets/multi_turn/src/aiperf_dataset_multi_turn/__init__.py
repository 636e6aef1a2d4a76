"""multi_turn: a file of conversations, whose later turns follow the server's answers."""
