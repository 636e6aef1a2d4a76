"""What dialects of inference servers share; a module for each idea."""
