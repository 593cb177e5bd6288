"""Features: which the settings switch on, and which an expert switches off."""

from collections.abc import Collection, Sequence
from typing import get_args

from services.platform.settings import Settings
from state.prompt import Feature

FEATURES: tuple[Feature, ...] = get_args(Feature)


def features_on(settings: Settings) -> tuple[Feature, ...]:
    """Return the features that the settings switch on."""
    switches: dict[Feature, bool] = {
        "core_memory": settings.memory_core,
        "recall": settings.memory_recall and settings.memory_episodes,
        "persona_card": settings.memory_persona,
        "time": settings.context_time,
        "memory_filing": settings.memory_filing,
        "quick_tools": settings.tools_quick,
    }
    return tuple(feature for feature in FEATURES if switches.get(feature, True))


def features_of_turn(configured: Sequence[Feature], switched_off: Collection[Feature]) -> list[Feature]:
    """Return the features that are on in a turn, without those that the expert switches off."""
    return [feature for feature in configured if feature not in switched_off]
