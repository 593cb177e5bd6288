"""The memory block of the prompt: what is always known about the user, and additions since the epoch began."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from services.context.epochs import NO_CHANGES, CoreMemoryChanges
from services.context.source import MEMORY, WEEKDAYS, PromptDraft, Source, readable, tagged
from services.context.sources.time import UserActivity
from services.llm.token_estimates import MESSAGE_OVERHEAD, count_tokens
from services.memory.core.content import FIELD_LABELS
from services.memory.core.items import canonical
from services.memory.core.store import CoreMemory
from services.text.language import Language
from services.time_reference.local_days import time_zone
from state.prompt import CoreMemorySections, Epoch
from state.section import Section

MOST_TOKENS = 300
MOST_CHANGE_TOKENS = 150
"""Tokens of changes since the epoch began beyond which a new one begins."""

Content = Mapping[str, Mapping[str, Any]]
"""Content by section."""

_FIRST = ("human", "persona")
NAMES = ("preferred_name", "nickname", "称呼", "昵称", "name", "姓名", "名字")
"""Fields of `human` that name the user, the preferred one first."""
STYLES = ("communication_style", "reply_style", "style", "沟通风格", "回复风格", "风格")
CONCERNS = (
    "current_intent",
    "main_concerns",
    "concerns",
    "goals",
    "plans",
    "当前意图",
    "主要关注",
    "关注",
    "目标",
)
"""Fields that are valid only for a while."""
_SELF_EXPLAINING = frozenset({"home", "work", "job", "studies"})
_CLAUSE = re.compile(
    r"(?:no longer |has |is )?(?:lives?|living|works?|working|moved|studies|studying)\b|不?再?[住在搬]"
)
_PASSING_DAY = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|this (?:morning|afternoon|evening|week|weekend|month)|"
    r"next (?:week|weekend|month|(?:mon|tues|wednes|thurs|fri|satur|sun)day))\b|"
    r"[今明后昨前][天日晚早夜]|[这本下上]个?(?:周|星期|礼拜|月)",
    re.IGNORECASE,
)

_HEADINGS: dict[Language, Mapping[str, str]] = {
    "en": {
        "human": "The user:",
        "persona": "You with this user:",
        "since": "Recorded since:",
        "closed": "No longer so:",
    },
    "zh": {"human": "用户：", "persona": "你与该用户相处时：", "since": "此后记下的：", "closed": "不再如此："},
}
_COLON: dict[Language, str] = {"en": ": ", "zh": "："}
_NAME: dict[Language, Mapping[str, str]] = {
    "en": {"one": "name: {0}", "both": "name: {0} (in full {1})"},
    "zh": {"one": "称呼：{0}", "both": "称呼：{0}（姓名{1}）"},
}
_LAST: dict[Language, Mapping[str, str]] = {
    "en": {"talk": "last talk: {day}", "topics": ", about {topics}"},
    "zh": {"talk": "上次聊天：{day}", "topics": "，谈到{topics}"},
}
_MOST_TOPICS = 3


class CoreMemorySource(Source[CoreMemorySections]):
    """Shows core memory as of the epoch's beginning and, in the tail, what was added since."""

    name = "core_memory"
    features = frozenset({"core_memory"})

    def __init__(self, core_memory: CoreMemory) -> None:
        self._core_memory = core_memory

    def when_off(self) -> CoreMemorySections:
        """Return no section: a switched-off core memory knows nothing."""
        return {}

    async def load(self, draft: PromptDraft) -> CoreMemorySections:
        """Core memory as it is now."""
        return await self._core_memory.for_turn(draft.owner) if draft.turn.has_core_memory else {}

    def select(self, draft: PromptDraft) -> Sequence[Section]:
        """Return the block of the epoch; nothing if core memory cannot be read."""
        if draft.of(CoreMemorySource) is None:
            return ()
        return core_memory_sections(draft.epoch, draft.core_memory_changes, draft.language)


def core_memory_sections(epoch: Epoch, changes: CoreMemoryChanges, language: Language) -> Sequence[Section]:
    """The memory block of an epoch and what was added since, as sections."""
    text, left_out = memory_text(epoch["core_memory"], epoch["persona_card"], language)
    dropped = {
        "section": "core_memory",
        "items": len(left_out),
        "reason": f"over {MOST_TOKENS} tokens, or of a day that has passed",
        "fields": left_out,
    }
    return (
        Section("core_memory", text, stable=True, dropped=[dropped] if left_out else []),
        Section("core_memory_changes", changes_text(changes, language)),
    )


def memory_text(content: Content, card: str, language: Language) -> tuple[str, list[str]]:
    """Return the block as the model reads it, always the same for the same content, and the fields left out.

    The most important fields come first (the user's name, how they like to be answered, what they are doing, then
    by name), and stay if not everything fits. Of lists that do not fit, the newest items are shown. Sizes are
    static estimates, because what is shown must not change within an epoch.

    Args:
        content: Content of each section.
        card: Lines on the last conversation, from `last_talk`; may be empty.
        language: Language of the headings.
    """
    left = MOST_TOKENS - MESSAGE_OVERHEAD - count_tokens(tagged(MEMORY, card))
    fields = [
        (section, key)
        for section in sorted(content, key=_rank_of_section)
        for key in _in_order(section, content[section])
    ]
    shown: dict[tuple[str, str], str] = {}
    left_out: list[tuple[str, str]] = []
    for lines_of in (_whole, _newest_items):
        for section, key in [field for field in fields if field not in shown]:
            title = 0 if any(section == there for there, _ in shown) else count_tokens(_title(section, language))
            lines = lines_of(content, section, key, language)
            line = next((each for each in lines if count_tokens(each) <= left - title), None)
            if line is not None:
                shown[section, key] = line
                left -= title + count_tokens(line)
        left_out = left_out or [
            (section, key)
            for section, key in fields
            if (section, key) not in shown and readable(content[section][key], language)
        ]
    blocks = [
        "\n".join(
            [
                _title(section, language),
                *(shown[field] for field in fields if field in shown and field[0] == section),
            ]
        )
        for section in dict.fromkeys(section for section, _ in fields)
        if any(section == there for there, _ in shown)
    ]
    if card:
        blocks.append(card)
    return tagged(MEMORY, "\n".join(blocks)) if blocks else "", [f"{section}.{key}" for section, key in left_out]


def changes_text(changes: CoreMemoryChanges, language: Language) -> str:
    """Return the changes of core memory as the model reads them: what no longer holds, then what was added."""
    headings = _HEADINGS[language]
    blocks = []
    for heading, content in ((headings["closed"], changes.closed), (headings["since"], changes.added)):
        lines: list[str] = []
        for section in sorted(content, key=_rank_of_section):
            fields = content[section]
            found = (_line(content, section, key, fields[key], language) for key in _in_order(section, fields))
            if there := [line for line in found if line]:
                lines += there if section == "human" else [_title(section, language), *there]
        blocks += [heading, *lines] if lines else []
    return tagged(MEMORY, "\n".join(blocks)) if blocks else ""


def last_talk(known: UserActivity, now: datetime, timezone: str, language: Language) -> str:
    """Return when the user was last here before today, and the topic; empty if they were not."""
    if known.last_visit is None:
        return ""
    zone = time_zone(timezone)
    day = known.last_visit.astimezone(zone).date()
    if day >= now.astimezone(zone).date():
        return ""
    words = _LAST[language]
    line = words["talk"].format(day=f"{day} {WEEKDAYS[language][day.weekday()]}")
    if known.last_topics:
        line += words["topics"].format(topics=readable(list(known.last_topics[:_MOST_TOPICS]), language))
    return f"- {line}"


def first_of(fields: Mapping[str, Any], names: Sequence[str], language: Language) -> str | None:
    """Return the value of the first of these fields that has one."""
    found = (readable(fields[name], language) for name in names if fields.get(name) not in (None, "", [], {}))
    return next(filter(None, found), None)


def changes_since(epoch: Epoch, now: CoreMemorySections) -> tuple[str | None, CoreMemoryChanges]:
    """Return why core memory requires a new epoch, if it does; otherwise what has changed since this one began.

    A replaced value stays in the beginning, for the provider's cache, and the end of the prompt says that it no
    longer holds. Forgetting a value ends the epoch.
    """
    if any(section not in now for section in (*epoch["core_memory"], *epoch["core_versions"])):
        return "core memory removed", NO_CHANGES
    added: dict[str, dict[str, Any]] = {}
    closed: dict[str, dict[str, Any]] = {}
    for section, block in now.items():
        if block["rewritten_version"] > epoch["core_versions"].get(section, 0):
            return "core memory rewritten", NO_CHANGES
        before = epoch["core_memory"].get(section, {})
        if more := _beside(block["content"], before):
            added[section] = more
        if gone := _beside(before, block["content"]):
            closed[section] = gone
    changes = CoreMemoryChanges(added, closed)
    if count_tokens(changes_text(changes, "en")) > MOST_CHANGE_TOKENS:
        return "core memory grown", NO_CHANGES
    return None, changes


def _beside(content: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a content has that another has not: of lists the items, of mappings the entries."""
    more: dict[str, Any] = {}
    for key, value in content.items():
        there = other.get(key)
        if isinstance(value, dict) and isinstance(there, dict):
            left: Any = _beside(value, there)
        elif isinstance(value, list):
            held = {canonical(item) for item in (there if isinstance(there, list) else [there])}
            left = [item for item in value if canonical(item) not in held]
        elif isinstance(there, list):
            left = None if value in there else value
        else:
            left = None if canonical(value) == canonical(there) else value
        if left not in (None, {}, [], ""):
            more[key] = left
    return more


def _rank_of_section(section: str) -> tuple[int, str]:
    return (_FIRST.index(section) if section in _FIRST else len(_FIRST), section)


def _in_order(section: str, fields: Mapping[str, Any]) -> list[str]:
    """Return the fields of a section, the most important first; one line holds both of the user's names."""
    ranks = {key: rank for rank, key in enumerate((*NAMES, *STYLES, *CONCERNS))} if section == "human" else {}
    ordered = sorted(fields, key=lambda key: (ranks.get(key, len(ranks)), key))
    names = [key for key in ordered if key in NAMES and section == "human"]
    return [key for key in ordered if key not in names[1:]]


def _title(section: str, language: Language) -> str:
    known = _HEADINGS[language].get(section)
    return known or f"{readable(section, language)}{_COLON[language].strip()}"


def _line(content: Content, section: str, key: str, value: Any, language: Language) -> str:
    """Return a field as a line of the block; empty if it has no value."""
    text = readable(value, language)
    if not text:
        return ""
    if section == "human" and key in NAMES:
        named = (readable(content[section][name], language) for name in NAMES if name in content[section])
        names = list(dict.fromkeys(filter(None, named)))[:2]
        return f"- {_NAME[language]['both' if len(names) > 1 else 'one'].format(*names)}"
    if key in _SELF_EXPLAINING and _CLAUSE.match(text):
        return f"- {text}"
    label = FIELD_LABELS[language].get(key) or readable(key.replace("_", " "), language)
    return f"- {label}{_COLON[language]}{text}"


def _whole(content: Content, section: str, key: str, language: Language) -> Iterator[str]:
    """Return the field without what is valid only for a while."""
    if line := _line(content, section, key, _lasting(key, content[section][key]), language):
        yield line


def _newest_items(content: Content, section: str, key: str, language: Language) -> Iterator[str]:
    """Yield the last items of a list, fewer each time."""
    value = _lasting(key, content[section][key])
    for first in range(1, len(value) if isinstance(value, list) else 0):
        if line := _line(content, section, key, value[first:], language):
            yield line


def _lasting(key: str, value: Any) -> Any:
    """Return the items of a temporary field that name no relative day, because that day passes."""
    if key not in CONCERNS:
        return value
    if isinstance(value, list):
        return [item for item in value if not _PASSING_DAY.search(readable(item, "en"))]
    return "" if _PASSING_DAY.search(readable(value, "en")) else value
