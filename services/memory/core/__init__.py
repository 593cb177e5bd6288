"""Core memory: what an expert always knows of a user, its values and its limits."""
