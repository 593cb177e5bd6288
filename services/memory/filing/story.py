"""A game or story that the user has announced: which messages the filing model says belong to it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field

_ID = re.compile(r"[uoa]\d{1,4}", re.IGNORECASE)
_FIRST, _LAST = ("from", "start", "first", "begin", "begins"), ("to", "until", "end", "last", "ends")


class Story(BaseModel):
    """The messages of a game or story, in the requested form."""

    first: str = Field("", alias="from", description="short id of the message that announces it: u2")
    last: str = Field("", alias="to", description="that of its last one; empty = it goes on after all messages")


@dataclass(frozen=True)
class StoryTold:
    """A story as an answer describes it; no story if all fields are empty."""

    first: str = ""
    last: str = ""
    only: tuple[str, ...] = ()
    """Its messages one by one, instead of the first and the last."""
    goes_on: bool = False
    """Whether it continues after the last message."""

    @property
    def is_told(self) -> bool:
        """Whether there is one."""
        return bool(self.first or self.last or self.only or self.goes_on)


NO_STORY = StoryTold()


def story_of_answer(given: Any) -> StoryTold:
    """Return the story that an answer describes: as an object, a list of ids, a text with ids, or a yes or no."""
    if isinstance(given, Mapping):
        named = {str(key).casefold(): value for key, value in given.items()}
        first, last = (
            next((_ids(named[each]) for each in names if each in named), []) for names in (_FIRST, _LAST)
        )
        goes_on = named.get("goes_on", bool(first) and not last)
        return StoryTold("".join(first[:1]), "".join(last[:1]), goes_on=goes_on is True)
    if isinstance(given, list):
        return StoryTold(only=tuple(each for one in given for each in _ids(one)))
    if isinstance(given, str) and (ids := _ids(given)):
        return StoryTold(ids[0], "".join(ids[1:2]), goes_on=len(ids) == 1)
    return StoryTold(goes_on=given is True)


def _ids(given: Any) -> list[str]:
    return [each.casefold() for each in _ID.findall(given)] if isinstance(given, str) else []
