"""When the memory agent looks at a turn."""

from services.memory.agent.triggers import is_worth_filing

REMEMBER = "remember_turn"
"""Task that files what is worth remembering of a turn."""

DECIDE_COMMAND = "decide_memory_command"
"""Task that decides whether a turn asks memory for something."""


def jobs_of_turn(said: str, answer: str) -> list[str]:
    """Return the names of the tasks that a completed turn causes for memory; for many turns none."""
    return [REMEMBER] if is_worth_filing(said, answer) else []
