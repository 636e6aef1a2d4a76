"""single_turn: a file of rows that are sent without history."""
