"""The job that asks a model how a user sounds."""

GIVE_OPINION = "give_tone_opinion"
"""Task that asks the small model about a turn's message."""
