"""What a process that answers loads before its first turn, which would otherwise hold up all turns beside it."""

from services.platform.settings import Settings


def warm_up(settings: Settings) -> None:
    """Load the dictionaries, the words of feeling and the SDK's types; about a second, for a thread of its own."""
    # Commands that answer nobody do without all of it.
    from services.llm import answer_events  # noqa: PLC0415
    from services.memory import terms  # noqa: PLC0415
    from services.tone import lexicon  # noqa: PLC0415

    terms.warm()
    lexicon.load()
    if settings.llm_api == "responses" and not settings.offline:
        answer_events.warm()
