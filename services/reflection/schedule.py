"""The job that thinks over a turn: named here, as the turn causes it."""

REFLECT = "reflect_on_turn"
"""Task that writes what the expert thinks of a turn, and says to nobody."""
