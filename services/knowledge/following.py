"""Whether a message goes on from the one before it, so that it says what it asks only together with that."""

import re
from collections.abc import Sequence

from services.llm.language import language_of
from services.memory.terms import informative_terms
from state.prompt import HistoryMessage

_MOST_CHARACTERS = {"en": 80, "zh": 24}
_FEW_TERMS = 2
_GOES_ON = {
    "en": re.compile(r"(?:and|but|or|so|then|also|what about|how about|what if)\b", re.IGNORECASE),
    "zh": re.compile(r"那|还有|另外|如果|要是|它|这个|这些"),
}
_POINTS_BACK = {
    "en": re.compile(r"\b(?:it|its|they|them|their|that|those|this|these|there|one)\b", re.IGNORECASE),
    "zh": re.compile(r"它|这个|那个|这些|那些|呢[？?]?$"),
}


def followed(message: str, history: Sequence[HistoryMessage]) -> str | None:
    """The user's message before, where this one goes on from it and names little itself; else None."""
    text = message.strip()
    language = language_of([text])
    if len(text) > _MOST_CHARACTERS[language]:
        return None
    goes_on = _GOES_ON[language].match(text) or _POINTS_BACK[language].search(text)
    if not goes_on or len(informative_terms(text)) > _FEW_TERMS:
        return None
    before = (shown["content"] for shown in reversed(history) if shown["role"] == "user")
    return next(before, None)
