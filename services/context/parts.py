"""Which parts of memory and of a turn are on: by the settings, and for an expert that goes without some."""

from collections.abc import Collection
from typing import get_args

from services.platform.settings import Settings
from state.conversation import ConversationState
from state.prompt import Part

PARTS: tuple[Part, ...] = get_args(Part)


def parts_on(settings: Settings) -> tuple[Part, ...]:
    """The parts that the settings leave on."""
    switches: dict[Part, bool] = {
        "core_memory": settings.memory_core,
        "recall": settings.memory_recall and settings.memory_episodes,
        "persona_card": settings.memory_persona,
        "tone": settings.tone,
        "time": settings.context_time,
        "memory_agent": settings.memory_agent,
        "quick_tools": settings.tools_quick,
    }
    return tuple(part for part in PARTS if switches.get(part, True))


def is_on(state: ConversationState, part: Part) -> bool:
    """Whether the turn has a part; one that nobody routed has all of them."""
    parts: Collection[Part] = state.get("parts", PARTS)
    return part in parts
