"""Features of memory and of a turn: which are on by the settings, and which an expert goes without."""

from collections.abc import Collection, Sequence
from typing import get_args

from services.platform.settings import Settings
from state.prompt import Feature

FEATURES: tuple[Feature, ...] = get_args(Feature)


def features_on(settings: Settings) -> tuple[Feature, ...]:
    """The features that the settings leave on."""
    switches: dict[Feature, bool] = {
        "core_memory": settings.memory_core,
        "recall": settings.memory_recall and settings.memory_episodes,
        "persona_card": settings.memory_persona,
        "tone": settings.tone,
        "time": settings.context_time,
        "memory_agent": settings.memory_agent,
        "quick_tools": settings.tools_quick,
    }
    return tuple(feature for feature in FEATURES if switches.get(feature, True))


def features_of_turn(configured: Sequence[Feature], switched_off: Collection[Feature]) -> list[Feature]:
    """Features that are on in a turn of an expert who goes without some."""
    return [feature for feature in configured if feature not in switched_off]
