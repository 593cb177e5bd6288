"""The prompt: the sources of its sections, and how these are assembled within the budget.

A source raises `DatabaseUnavailable` where PostgreSQL does not answer.
"""
