"""Conversations: turns, messages, leases, branches, spaces and experts.

Whatever reads or writes PostgreSQL raises `DatabaseUnavailable` where it does not answer.
"""
