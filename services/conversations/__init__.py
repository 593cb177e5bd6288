"""Conversations: turns, messages, leases, branches, spaces and experts.

Whatever reads or writes PostgreSQL raises `DatabaseUnavailable` if it does not answer.
"""
