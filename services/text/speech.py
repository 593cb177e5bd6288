"""Whether a message says anything, or only asks, orders and acknowledges."""

from services.text.caches import text_cache
from services.text.language import language_of
from services.text.questions import asks, is_small_talk
from services.text.sentences import SEMICOLONS, sentences
from services.text.tokenizer import simplified_text
from services.text.work_requests import asks_for_work, asks_to_be_told

_MOST_CHARACTERS = 2_000
_SHORT, _KEPT = 500, 2_000
"""Characters of texts of which it is kept, and their number: turns recall the same ones."""


def states_something(text: str) -> bool:
    """Whether a sentence of a message states something."""
    return (_kept if len(text) <= _SHORT else _states_something)(text)


def _states_something(text: str) -> bool:
    language = language_of([text])
    for sentence in sentences(text[:_MOST_CHARACTERS], SEMICOLONS):
        said = sentence.text.strip()
        if not said or is_small_talk(said) or asks(said, language):
            continue
        folded = simplified_text(said).replace("’", "'")
        if not asks_for_work(folded) and not asks_to_be_told(folded):
            return True
    return False


_kept = text_cache(_KEPT)(_states_something)
