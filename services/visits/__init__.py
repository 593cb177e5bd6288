"""Visits: stretches of activity in a conversation."""
