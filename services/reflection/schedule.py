"""Name of the job that writes private notes, for the turns that cause it."""

REFLECT = "reflect_on_turn"
"""Task that writes the expert's private note on a turn."""
