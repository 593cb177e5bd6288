"""Tells whose words a change of memory rests on: the user's own, or words of others.

Words of others are those of documents, imports and tools, however often they are retold.
"""

import calendar
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import tuple_row

from services.memory.core.content import FIELD_LABELS
from services.memory.core.values import IS_FOREIGN, CoreValues
from services.memory.reading.repeated import sentences_at
from services.platform.postgres import Database
from services.text.tokenizer import informative_terms, terms
from state.memory import ForeignOrigin
from state.turn import Read

# A written memory without messages was imported, or written by a program, but for what was written in the console.
_AMONG: LiteralString = f"""
SELECT coalesce((SELECT jsonb_agg(jsonb_build_object('id', m.id, 'content', m.content, 'spans', m.foreign_spans))
                 FROM messages m
                 WHERE m.conversation_id = %(conversation_id)s AND m.tenant_id = %(tenant_id)s
                   AND m.id = ANY(%(messages)s) AND m.origin IS NOT NULL), '[]') AS messages,
       coalesce((SELECT jsonb_agg(jsonb_build_object('id', e.id, 'content', m.content, 'spans', m.foreign_spans))
                 FROM episodes e LEFT JOIN messages m ON m.id = ANY(e.source_message_ids) AND m.origin IS NOT NULL
                 WHERE e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.id = ANY(%(episodes)s)
                   AND (e.episode_type <> 'turn' AND e.source_message_ids = '{{}}'
                            AND e.made_by->>'by' IS DISTINCT FROM 'console'
                        OR e.origin IN ('tool', 'document') OR m.id IS NOT NULL)), '[]') AS episodes,
       EXISTS (SELECT FROM messages m
               WHERE m.conversation_id = %(conversation_id)s AND m.origin IS NOT NULL
                 AND m.foreign_spans IS DISTINCT FROM '{{}}') AS of_conversation,
       EXISTS (SELECT FROM conversations c JOIN messages m ON m.conversation_id = c.id
               WHERE c.tenant_id = %(tenant_id)s AND c.user_id = %(user_id)s AND m.origin IS NOT NULL
                 AND m.foreign_spans IS DISTINCT FROM '{{}}')
           OR EXISTS (SELECT FROM episodes e WHERE e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s
               AND (e.made_by->>'actor' = 'import' OR e.made_by->>'by' IN ('api', 'mcp'))) AS of_user,
       %(core_memory)s AND EXISTS (
               SELECT FROM core_memory_blocks b JOIN core_memory_history h ON h.block_id = b.id
               LEFT JOIN messages m ON m.id = h.trigger_message_id AND m.tenant_id = b.tenant_id
               WHERE b.tenant_id = %(tenant_id)s AND b.user_id = %(user_id)s AND ({IS_FOREIGN})) AS in_core_memory
"""  # noqa: S608 — our own text only
_NOTE_SPANS: LiteralString = """
UPDATE messages SET foreign_spans = %(spans)s WHERE id = %(message_id)s AND tenant_id = %(tenant_id)s
RETURNING id
"""
_NOTE_ORIGIN: LiteralString = """
UPDATE messages SET origin = %(origin)s WHERE id = %(message_id)s AND tenant_id = %(tenant_id)s RETURNING id
"""


@dataclass(frozen=True)
class ForeignItems:
    """Messages and memories that contain words of others."""

    messages: Mapping[str, str | None] = field(default_factory=dict)
    """For each message its sentences in words of others; None = all of it."""
    episodes: Mapping[str, str | None] = field(default_factory=dict)
    of_conversation: bool = False
    of_user: bool = False
    """Whether any of the user's conversations, or anything imported for the user, contains words of others."""
    core_memory: Sequence[str] | None = ()
    """Values of core memory that others wrote, with the names of fields that they chose; None = any may be."""


class ForeignOrigins:
    """Finds out what was made from words of others."""

    def __init__(self, database: Database, values: CoreValues) -> None:
        self._database = database
        self._values = values

    async def among(
        self,
        tenant_id: UUID,
        user_id: UUID,
        *,
        conversation_id: UUID | None = None,
        messages: Collection[str] = (),
        episodes: Collection[str] = (),
        core_memory: bool = False,
    ) -> ForeignItems:
        """Return which of these ids contain words of others, and whether the conversation and the user have any.

        With `core_memory`, values that others wrote are included, even those that only an older prompt still
        shows.
        """
        values = {
            "tenant_id": tenant_id,
            "user_id": user_id,
            "conversation_id": conversation_id,
            "messages": [UUID(each) for each in messages],
            "episodes": [UUID(each) for each in episodes],
            "core_memory": core_memory,
        }
        [(of_messages, of_episodes, of_conversation, of_user, in_core_memory)] = await self._database.fetch(
            tenant_id, _AMONG, values, tuple_row
        )
        # Most users have none, and their history is not read.
        core_values = await self._in_core_memory(tenant_id, user_id) if in_core_memory else ()
        return ForeignItems(
            _foreign_in(of_messages), _foreign_in(of_episodes), of_conversation, of_user, core_values
        )

    async def _in_core_memory(self, tenant_id: UUID, user_id: UUID) -> list[str]:
        found = [each for each in await self._values.read(tenant_id, user_id) if each.is_foreign]
        return [each.text if each.field in FIELD_LABELS["zh"] else f"{each.field}: {each.text}" for each in found]

    async def note_spans(self, tenant_id: UUID, message_id: UUID, spans: Sequence[int]) -> None:
        """Note the positions at which sentences of an answer made from words of others repeat them."""
        values = {"tenant_id": tenant_id, "message_id": message_id, "spans": list(spans)}
        await self._database.fetch(tenant_id, _NOTE_SPANS, values, tuple_row)

    async def note_origin(self, tenant_id: UUID, message_id: UUID, origin: ForeignOrigin | None) -> None:
        """Note that an answer repeats no words of others from earlier turns that its prompt showed."""
        values = {"tenant_id": tenant_id, "message_id": message_id, "origin": origin}
        await self._database.fetch(tenant_id, _NOTE_ORIGIN, values, tuple_row)


def _foreign_in(rows: Sequence[Mapping[str, Any]]) -> dict[str, str | None]:
    """Return the sentences in words of others of what was found, by ids; items without such sentences are left
    out."""
    found: dict[str, str | None] = {}
    for each in rows:
        if each["content"] is None or each["spans"] is None:
            found[each["id"]] = None
        elif each["spans"] and found.get(each["id"], "") is not None:
            told = (found.get(each["id"], ""), *sentences_at(each["content"], each["spans"]))
            found[each["id"]] = "\n".join(filter(None, told))
    return found


_OF_USER = "the user user's users 用户 用户的"
AN_IMAGE = "(image)"
"""Stands for the words in an image, which are unknown."""
_HALF = 0.5
_ASKS_REMOVAL = re.compile(
    r"\b(?:forget|remove|delete|erase|drop|(?:do not|don['’]t) (?:remember|save|store|keep)|off the record)\b"
    r"|忘|删|别记|不要记|不用记|不记",
    re.IGNORECASE | re.ASCII,  # a Chinese character ends an English word, as in delete掉
)
_IN_ORDER = 0.66
"""Share of a change's words that the user said in the same order."""
_MOST_WORDS = 600
_RECENT = 3
_EXACT = re.compile(r"\d{2,}|[^\W\d_]{0,30}\d[\w-]*|[\w.+-]{1,64}@[\w-]+|(?<!\A)(?<![.!?。！？] )\b[A-Z][\w-]+")
"""Numbers, names that contain figures, addresses and names: things that nobody but their writer could have
said."""
_FIGURE, _YEAR = re.compile(r"\d+"), re.compile(r"(?:19|20)\d\d")
_DATE = re.compile(r"(?:19|20)\d\d-(\d\d)-(\d\d)(?!\d)")
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nothing|cannot|isn't|doesn't|don't|won't|without)\b|不|没|无|别|非", re.I
)


def rests_on_user(text: str, read: Read) -> bool:
    """Return whether a statement says what the user said; true if the turn read nothing else.

    If the turn read words of others, or an earlier turn an image, the statement's words must be the user's and in
    the user's order; whatever only the others name or deny waits. If it read only remembered words of others, most
    of the statement must not stand in these alone.
    """
    sought = [term for term in terms(text) if term in informative_terms(text) and term not in terms(_OF_USER)]
    if not sought or not (any(read.foreign) or any(read.remembered)):
        return True
    if not any(read.foreign) and _is_agreed(text, sought, read.agreed):
        return True
    own = [term for each in read.said for term in terms(each)]
    others = {term for each in (*read.foreign, *read.remembered) for term in terms(each)}
    only_theirs = [term for term in sought if term not in own and term in others]
    if not any(read.foreign) and AN_IMAGE not in read.remembered:
        return 3 * len(only_theirs) < len(sought)
    said = " ".join(read.said).casefold()
    exact = _EXACT.findall(_without_dates_of(said, text))
    if only_theirs and (len(only_theirs) >= len(sought) / 3 or any(each.casefold() not in said for each in exact)):
        return False
    if _NEGATION.search(text) and not _NEGATION.search(read.said[-1] if read.said else ""):
        return False
    return _common_in_order(sought, own) >= _IN_ORDER * len(sought)


def _is_agreed(text: str, sought: Sequence[str], agreed: Sequence[str]) -> bool:
    """Return whether a statement says what the conversation says and the user has agreed to. A year may be added;
    any other figure and any negation must stand there."""
    if not agreed:
        return False
    told = " ".join(agreed).casefold()
    words = {term for each in agreed for term in terms(each)}
    undated = _without_dates_of(told, text)
    sought = [each for each in sought if each in terms(undated)]
    figures = (each for each in _FIGURE.findall(undated) if not _YEAR.fullmatch(each))
    if any(each not in told for each in figures) or (_NEGATION.search(text) and not _NEGATION.search(told)):
        return False
    return bool(sought) and len(sought) > 3 * sum(term not in words for term in sought)


def _without_dates_of(told: str, text: str) -> str:
    """Return a text without the dates whose day and month were told in other forms (“18 November”, 11月18日)."""

    def replaced(date: re.Match[str]) -> str:
        month, day = int(date[1]), int(date[2])
        if not 0 < month <= 12:  # noqa: PLR2004 — a year's months
            return date[0]
        name = rf"(?:{calendar.month_abbr[month]}|{calendar.month_name[month]})"
        forms = (
            rf"\b{day}(?:st|nd|rd|th)?(?: of)? {name}\b|\b{name}\.? {day}(?!\d)|(?<!\d)0?{month}月0?{day}(?!\d)"
            rf"|(?<!\d)(?:0?{month}[/.-]0?{day}|0?{day}[/.-]0?{month})(?!\d)"
        )
        return " " if re.search(forms, told, re.IGNORECASE) else date[0]

    return _DATE.sub(replaced, text)


def asks_to_remove(texts: Sequence[str], read: Read) -> bool:
    """Return whether the user's own words ask for texts to be removed; true if the turn read no words of others.

    If the turn read such words itself, the message must ask for it and name half of each text. If it read only
    remembered ones, one of the last messages must ask for it, and name something of each text.
    """
    if not any(read.foreign) and not any(read.remembered):
        return True
    last = read.said[-_RECENT:]
    if not any(_ASKS_REMOVAL.search(each) for each in (last[-1:] if any(read.foreign) else last)):
        return False
    own = {term for each in last for term in terms(each)}
    share = _HALF if any(read.foreign) else 0
    named = [
        (sum(term in own for term in informative_terms(text)), len(informative_terms(text))) for text in texts
    ]
    return all(count > 0 and count >= share * most for count, most in named)


def _common_in_order(sought: Sequence[str], own: Sequence[str]) -> int:
    """Return the length of the longest common subsequence with the last words (Wagner and Fischer, 1974)."""
    own = own[-_MOST_WORDS:]
    row = [0] * (len(own) + 1)
    for term in sought:
        before = 0
        for at, said in enumerate(own, 1):
            before, row[at] = row[at], before + 1 if term == said else max(row[at], row[at - 1])
    return row[-1]
