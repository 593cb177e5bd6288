"""Promises: what the assistant says by itself, and when."""
