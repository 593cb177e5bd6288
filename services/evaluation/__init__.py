"""Measures how well memory remembers, on a set of conversations and questions."""
