"""How much of its drafts a speculative decoder accepted, and whether what servers said of it could be used."""
