"""When the memory agent looks at a turn."""

from services.memory.gate import what_fires

REMEMBER = "remember_turn"
"""Task that files what is worth remembering of a turn."""


def jobs_of_turn(said: str, answer: str) -> list[str]:
    """Names of the tasks that a completed turn causes for memory; for most turns none."""
    return [REMEMBER] if what_fires(said, answer) else []
