"""Finds the memories that a text means, and lists what is known."""
