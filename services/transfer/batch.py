"""A batch of an import: all its valid lines are stored in one transaction."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import Any, TypeVar
from uuid import UUID

from uuid_utils.compat import uuid7

from services.conversations.values import title_of
from services.encryption.marks import Words, WordsJson
from services.memory.core.items import values_of
from services.memory.removal.purge import word_digest
from services.platform.connections import Connection
from services.platform.patience import beside_the_loop
from services.transfer.lines import (
    CoreMemoryLine,
    EpisodeLine,
    ExclusionLine,
    Line,
    MessageLine,
    PromiseLine,
    SessionLine,
    StoreItemLine,
    UserLine,
    instant,
)
from services.transfer.memory_store import ImportedMemory, Owned
from services.transfer.message_store import ImportedMessages
from services.transfer.messages import ImportedMessage, exchanges_of
from services.transfer.owners import (
    DEFAULT_EXPERT,
    Forgotten,
    KnownConversation,
    KnownUser,
    Owners,
    Row,
    Session,
    Space,
    digest_of_line,
)
from services.transfer.report import ImportReport

Numbered = tuple[int, Line]
"""A line with its number."""
_L = TypeVar("_L", bound=Line)
_OF_CONVERSATION = MessageLine | SessionLine | EpisodeLine | PromiseLine
_LONG = 20_000
"""Minimum characters of messages for which a thread computes what is stored."""


class Batch:
    """Stores lines of one tenant in the caller's transaction."""

    def __init__(
        self, connection: Connection, tenant_id: UUID, lines: Sequence[Numbered], *, default_timezone: str
    ) -> None:
        self._owners = Owners(connection, tenant_id)
        self._default_timezone = default_timezone
        self._messages = ImportedMessages(connection, tenant_id)
        self._forgotten = Forgotten(connection, tenant_id)
        self._memory = ImportedMemory(connection, tenant_id)
        self._lines = list(lines)
        self._report = ImportReport()
        self._users: dict[str, KnownUser] = {}
        self._experts: dict[str, UUID] = {}
        self._spaces: dict[Space, UUID] = {}
        self._conversations: dict[Session, KnownConversation] = {}
        self.touched: dict[UUID, tuple[datetime, datetime]] = {}
        """Conversations that received messages, with the times of the first and last message."""

    async def store(self, *, episodes: bool) -> ImportReport:
        """Store the lines and report the outcome; with `episodes`, exchanges become episodes."""
        await self._find_experts()
        self._users = await self._owners.users(_users_of(self._lines, self._default_timezone))
        times = self._times()
        await self._find_forgotten()
        await self._find_spaces()
        if wanted := self._wanted_conversations(times):
            self._conversations = await self._owners.conversations(wanted)
            self._refuse_other_spaces()
        self._count_made()
        await self._store_messages(times, episodes=episodes)
        await self._store_memory()
        await self._store_exclusions()
        return self._report

    async def _find_experts(self) -> None:
        named = {_expert_of(line) for _, line in self._lines} - {None}
        self._experts = await self._owners.experts({DEFAULT_EXPERT, *filter(None, named)})
        self._keep(
            (number, f"expert: there is no expert named {name!r}")
            for number, line in self._lines
            if (name := _expert_of(line)) is not None and name not in self._experts
        )

    async def _find_forgotten(self) -> None:
        """Find what users have forgotten for good, and leave its memories out."""
        known = [
            (self._users[line.user_id].id, line)
            for _, line in self._lines
            if isinstance(line, MessageLine | SessionLine | EpisodeLine | CoreMemoryLine)
        ]
        await self._forgotten.look_up(known)
        if self._forgotten.digests:
            kept = [(number, self._without_forgotten(line)) for number, line in self._lines]
            self._report.skipped += sum(line is None for _, line in kept)
            self._lines = [(number, line) for number, line in kept if line is not None]

    def _without_forgotten(self, line: Line) -> Line | None:
        """Return a line without forgotten words. A message keeps its place and its words, but is out of memory."""
        forgotten, user_id = self._forgotten, self._users[line.user_id].id
        match line:
            case EpisodeLine() if forgotten.deleted(user_id, word_digest("episode", line.content)) is not None:
                return None
            case SessionLine() if forgotten.deleted(user_id, word_digest("title", line.title)) is not None:
                return line.model_copy(update={"title": ""})
            case CoreMemoryLine():
                content = forgotten.without_forgotten(user_id, line.content)
                held = set(values_of(content))
                pinned = [each for each in line.pinned if (each.field, each.text) in held]
                return line.model_copy(update={"content": content, "pinned": pinned})
            case MessageLine() if forgotten.deleted(user_id, digest_of_line(line)) is not None:
                return line.model_copy(update={"retracted": True})
        return line

    def _is_deleted(self, line: MessageLine) -> bool:
        if not self._forgotten.digests:
            return False
        return bool(self._forgotten.deleted(self._users[line.user_id].id, digest_of_line(line)))

    async def _find_spaces(self) -> None:
        named = {
            (self._users[line.user_id].id, line.space)
            for _, line in self._lines
            if isinstance(line, _OF_CONVERSATION | CoreMemoryLine | StoreItemLine) and line.space is not None
        }
        if named:
            self._spaces = await self._owners.spaces(named)

    def _refuse_other_spaces(self) -> None:
        """Refuse lines that name another space than the one their existing conversation belongs to."""
        self._keep(
            (number, "space: the conversation belongs to another space, or to none")
            for number, line in self._lines
            if isinstance(line, _OF_CONVERSATION)
            and line.space is not None
            and line.session_id is not None
            and self._conversations[self._session(line.user_id, line.session_id)].space_id != self._space(line)
        )

    def _times(self) -> dict[int, datetime]:
        """Return the time of each message by line number; refuse times that are out of range."""
        times: dict[int, datetime] = {}
        wrong = []
        for number, line in self._only(MessageLine):
            try:
                zone = line.timezone or self._users[line.user_id].timezone
                times[number] = instant(line.created_at, zone)
            except ValueError as error:
                wrong.append((number, f"created_at: {error}"))
        self._keep(wrong)
        return times

    def _wanted_conversations(self, times: dict[int, datetime]) -> dict[Session, Row]:
        """Return the rows of new conversations, made from their own lines or else from their first messages."""
        wanted: dict[Session, Row] = {}
        spaces = {
            self._session(line.user_id, line.session_id): space_id
            for _, line in reversed(self._lines)
            if isinstance(line, _OF_CONVERSATION)
            and line.session_id is not None
            and (space_id := self._space(line)) is not None
        }

        def row(session: Session, line: _OF_CONVERSATION, title: str, at: datetime, **given: Any) -> Row:
            ids = {"id": uuid7(), "user_id": session[0], "expert_id": self._expert(line)}
            about = {"session_key": session[1], "title": Words(title), "renamed": False, "pinned_at": None}
            noted = {"metadata": WordsJson({}), "created_at": at}
            return {**ids, "space_id": spaces.get(session), **about, **noted, **given}

        for number, line in self._only(MessageLine):
            session = self._session(line.user_id, line.session_id)
            if session not in wanted or times[number] < wanted[session]["created_at"]:
                title = "" if self._is_deleted(line) else title_of(line.content)
                wanted[session] = row(session, line, title, times[number])
        others: list[EpisodeLine | PromiseLine] = [line for _, line in self._only(EpisodeLine)]
        for episode in [*others, *(line for _, line in self._only(PromiseLine))]:
            if episode.session_id is not None:
                session = self._session(episode.user_id, episode.session_id)
                wanted.setdefault(session, row(session, episode, "", episode.created_at))
        for _, named in reversed(self._only(SessionLine)):
            session = self._session(named.user_id, named.session_id)
            kept = {"renamed": named.renamed, "pinned_at": datetime.now(UTC) if named.pinned else None}
            noted = WordsJson(named.metadata)
            wanted[session] = row(session, named, named.title, named.created_at, metadata=noted, **kept)
        return wanted

    def _count_made(self) -> None:
        """Count the lines of users and sessions; of each new one, the first line counts as imported."""
        made: set[str | Session] = set()
        for _, line in self._lines:
            if isinstance(line, UserLine):
                owner: KnownUser | KnownConversation = self._users[line.user_id]
                name: str | Session = line.user_id
            elif isinstance(line, SessionLine):
                name = self._session(line.user_id, line.session_id)
                owner = self._conversations[name]
            else:
                continue
            if owner.made and name not in made:
                made.add(name)
                self._report.imported += 1
            else:
                self._report.skipped += 1

    async def _store_messages(self, times: dict[int, datetime], *, episodes: bool) -> None:
        messages = [
            ImportedMessage(
                number,
                self._conversation(line.user_id, line.session_id),
                line,
                times[number],
                deleted=self._is_deleted(line),
            )
            for number, line in self._only(MessageLine)
        ]
        if not messages:
            return
        characters = sum(len(message.line.content) for message in messages)
        await beside_the_loop(partial(_compute, messages), characters=characters, most=_LONG)
        known = await self._messages.known(messages) | _repeated(messages)
        self._report.skipped += len(known)
        if exchanges := exchanges_of(messages, known):
            await self._messages.add(exchanges, episodes=episodes)
            self._report.imported += len(messages) - len(known)
            for message in sorted(chain.from_iterable(each.messages for each in exchanges), key=lambda m: m.at):
                first, _ = self.touched.get(message.conversation_id, (message.at, message.at))
                self.touched[message.conversation_id] = first, message.at

    async def _store_memory(self) -> None:
        sections, episodes = self._owned(CoreMemoryLine), self._owned(EpisodeLine)
        items, promises = self._owned(StoreItemLine), self._owned(PromiseLine)
        made = await self._memory.add_sections(sections)
        made += await self._memory.add_episodes(episodes)
        made += await self._memory.add_items(items)
        made += await self._memory.add_promises(promises)
        self._report.imported += made
        self._report.skipped += len(sections) + len(episodes) + len(items) + len(promises) - made

    async def _store_exclusions(self) -> None:
        excluded = self._owned(ExclusionLine)
        stored = await self._memory.add_exclusions(excluded)
        self._report.imported += sum(stored.values())
        self._report.skipped += len(stored) - sum(stored.values())
        self._keep(
            (row["number"], "its conversation, or what it excludes, is not stored")
            for _, row in excluded
            if row["number"] not in stored
        )

    def _keep(self, wrong: Iterable[tuple[int, str]]) -> None:
        """Refuse these lines and continue with the others."""
        refused = dict(wrong)
        for number, reason in refused.items():
            self._report.refuse(number, reason)
        self._lines = [numbered for numbered in self._lines if numbered[0] not in refused]

    def _only(self, kind: type[_L]) -> list[tuple[int, _L]]:
        return [(number, line) for number, line in self._lines if isinstance(line, kind)]

    def _owned(self, kind: type[_L]) -> list[Owned[_L]]:
        """Return the lines of a kind, each with the ids of its owner."""
        names = ("number", "user_id", "expert_id", "space_id", "conversation_id")
        return [
            (line, dict(zip(names, (number, self._users[line.user_id].id, *self._place(line)), strict=True)))
            for number, line in self._only(kind)
        ]

    def _expert(self, line: Line) -> UUID:
        return self._experts[_expert_of(line) or DEFAULT_EXPERT]

    def _space(self, line: _OF_CONVERSATION | CoreMemoryLine | StoreItemLine) -> UUID | None:
        return self._spaces[self._users[line.user_id].id, line.space] if line.space is not None else None

    def _place(self, line: Line) -> tuple[UUID, UUID | None, UUID | None]:
        """Return expert, space and conversation of a line; it is in the space of its conversation."""
        if isinstance(line, EpisodeLine | PromiseLine) and line.session_id is not None:
            known = self._conversations[self._session(line.user_id, line.session_id)]
            return self._expert(line), known.space_id, known.id
        space_id = None if isinstance(line, UserLine | ExclusionLine) else self._space(line)
        return self._expert(line), space_id, None

    def _session(self, user_id: str, session_id: str) -> Session:
        return self._users[user_id].id, session_id

    def _conversation(self, user_id: str, session_id: str) -> UUID:
        return self._conversations[self._session(user_id, session_id)].id


def _expert_of(line: Line) -> str | None:
    return line.expert if isinstance(line, _OF_CONVERSATION | CoreMemoryLine) else None


def _users_of(lines: Sequence[Numbered], default_timezone: str) -> list[Row]:
    """Return one row for each user of the lines, made from the user's own line or else from the first line."""
    users: dict[str, Row] = {}
    for line in (*(line for _, line in lines if isinstance(line, UserLine)), *(line for _, line in lines)):
        described = vars(line) if isinstance(line, UserLine) else {}
        zone = line.timezone if isinstance(line, UserLine | MessageLine) else None
        row = {
            "id": uuid7(),
            "external_id": line.user_id,
            "timezone": zone or default_timezone,
            "locale": described.get("locale"),
            "display_name": described.get("display_name"),
            "memory": described.get("memory", True),
            "mood": described.get("mood", True),
            "quiet_hours": described.get("quiet_hours"),
            "created_at": described.get("created_at") or datetime.now(UTC),
        }
        users.setdefault(line.user_id, row)
    return list(users.values())


def _compute(messages: Sequence[ImportedMessage]) -> None:
    """Compute what is stored of the messages' texts; each message keeps the results."""
    for message in messages:
        _ = message.key, message.token_count


def _repeated(messages: Sequence[ImportedMessage]) -> set[int]:
    """Return the line numbers of messages that an earlier line repeats."""
    seen: set[tuple[UUID, str]] = set()
    repeated = set()
    for message in messages:
        name = message.conversation_id, message.key
        if name in seen:
            repeated.add(message.number)
        seen.add(name)
    return repeated
