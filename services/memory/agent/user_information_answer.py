"""Facts about the user in a model's answer about topics: what the user stated, with the messages that say so."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any
from uuid import UUID

from services.errors import InvalidInput
from services.memory.content import check_values
from services.memory.items import item_text
from services.text.clauses import statements
from services.text.tokenizer import informative_terms, lone_characters, terms

_MOST_LOOKED_AT = 64
"""Maximum number of items in an answer; further ones are ignored."""
_LONGEST_VALUE = 300
"""Characters."""
_LONGEST_FIELD = 64
_LEAST_SHARED = 0.5
"""Share of an item's words that must occur in what the user said."""
_FIELDS = {
    **dict.fromkeys(("city", "location", "residence", "lives_in", "城市", "所在地", "居住地", "住址"), "home"),
    **dict.fromkeys(("occupation", "profession", "职业", "工作"), "work"),
    **dict.fromkeys(("姓名", "名字"), "name"),
    **dict.fromkeys(("nickname", "昵称", "称呼"), "preferred_name"),
    **dict.fromkeys(("preference", "likes", "dislikes", "偏好", "喜好"), "preferences"),
    **dict.fromkeys(("interests", "hobby", "爱好", "兴趣"), "hobbies"),
    **dict.fromkeys(("allergy", "过敏"), "allergies"),
    **dict.fromkeys(("pet", "宠物"), "pets"),
    **dict.fromkeys(("children", "家人", "家庭"), "family"),
    "年龄": "age",
    "生日": "birthday",
}
"""Alternative names that models use for fields of core memory."""


@dataclass(frozen=True)
class UserMessage:
    """One of the user's archived messages."""

    id: UUID
    content: str
    at: datetime


@dataclass(frozen=True)
class ToldItem:
    """An item that the model names, and the message that says it."""

    field: str
    value: str
    source: UserMessage


def told_items(information: Mapping[str, Any], said: Sequence[UserMessage]) -> list[ToldItem]:
    """Return the items of an answer that the user said, each with the newest message that says most of it.

    Only statements count: nothing comes from a question, a text to work on, or only from the assistant. Items that
    are not short texts, or have a number that the user did not give, are left out.

    Args:
        information: fields of core memory with a text, a list of texts or named texts each, as the model wrote it.
        said: the user's messages in the stretch, oldest first.
    """
    stated = []
    for message in said:
        text = "\n".join(clause.text for clause in statements(message.content))
        stated.append((message, frozenset(terms(text))))
    found = []
    for name, value in islice(_named(information), _MOST_LOOKED_AT):
        source = _source(value, stated)
        if source is not None:
            found.append(ToldItem(name, value, source))
    return list(dict.fromkeys(found))


def _named(information: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield fields and values, each value a short storable text."""
    for key, value in information.items():
        name = re.sub(r"\W+", "_", str(key)).strip("_").casefold()
        name = _FIELDS.get(name, name)
        if not 0 < len(name) <= _LONGEST_FIELD:
            continue
        for text in (" ".join(each.split()) for each in _texts(value)):
            if text and len(text) <= _LONGEST_VALUE and _can_be_stored({name: text}):
                yield name, text


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            if not isinstance(each, list):
                yield from _texts(each)
    elif isinstance(value, Mapping):
        yield from (
            f"{key}: {item_text(inner)}" for key, inner in value.items() if inner not in (None, "", [], {})
        )
    elif isinstance(value, str) or (isinstance(value, int | float) and not isinstance(value, bool)):
        yield str(value)


def _can_be_stored(content: Mapping[str, Any]) -> bool:
    try:
        check_values(content)
    except InvalidInput:
        return False
    return True


def _source(value: str, stated: Sequence[tuple[UserMessage, frozenset[str]]]) -> UserMessage | None:
    wanted = informative_terms(value) or lone_characters(value) or frozenset(terms(value))
    numbers = frozenset(term for term in wanted if any(character.isdigit() for character in term))
    best, most = None, max(1.0, _LEAST_SHARED * len(wanted))
    for message, words in stated:
        shared = len(wanted & words)
        if shared >= most and numbers <= words:
            best, most = message, shared
    return best
