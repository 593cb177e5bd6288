"""Export: everything of a user as JSON Lines, each of which the import takes.

Ids of ours are not in it, as they cannot be the same elsewhere, and neither is what is rebuilt from what is in
it: episodes of turns, summaries, topics. An export that is imported elsewhere gives an equal export.
"""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from services.errors import NotFound
from services.memory.pinned_values import pinned_among
from services.store.model import parted
from services.transfer.export_store import (
    ExportedEpisode,
    ExportedExclusion,
    ExportedItem,
    ExportedMessage,
    ExportedSection,
    ExportedSession,
    ExportedUser,
    ExportStore,
)
from services.transfer.messages import digest_of


class Exporter:
    """Exports users of a tenant."""

    def __init__(self, store: ExportStore) -> None:
        self._store = store

    async def user(self, tenant_id: UUID, name: str) -> ExportedUser:
        """The user whose export this is to be.

        Raises:
            NotFound: the tenant has no such user.
            DatabaseUnavailable: the database does not answer.
        """
        user = await self._store.user(tenant_id, name)
        if user is None:
            raise NotFound(f"There is no user {name!r}.")
        return user

    async def check_space(self, tenant_id: UUID, user: ExportedUser, space: str) -> None:
        """See that the user has a space.

        Raises:
            NotFound: there is none of this name.
            DatabaseUnavailable: the database does not answer.
        """
        if not await self._store.has_space(tenant_id, user.id, space):
            raise NotFound(f"The user {user.name!r} has no space {space!r}.")

    async def lines(
        self, tenant_id: UUID, user: ExportedUser, space: str | None = None
    ) -> AsyncIterator[list[str]]:
        """Yield the lines, some at a time, each with its end; with `space`, only what belongs to that space.

        First the user, then each conversation with its messages, oldest first, then core memory, episodes and
        items of the store, and last what conversations exclude. What is stored meanwhile may be in it or not.

        Raises:
            DatabaseUnavailable: the database does not answer; the export is not whole.
        """
        yield [_user_line(user)]
        for session in await self._store.sessions(tenant_id, user.id, space):
            yield [_session_line(user, session)]
            async for messages in self._store.messages(tenant_id, session.id):
                yield [_message_line(user, session, message) for message in messages]
        yield [_section_line(user, each) for each in await self._store.core_memory(tenant_id, user.id, space)]
        async for episodes in self._store.episodes(tenant_id, user.id, space):
            yield [_episode_line(user, episode) for episode in episodes]
        async for items in self._store.items(tenant_id, user.id, space):
            yield [_item_line(user, item) for item in items]
        yield [_exclusion_line(user, each) for each in await self._store.exclusions(tenant_id, user.id, space)]


def _user_line(user: ExportedUser) -> str:
    return _line(
        "user",
        user,
        timezone=user.timezone,
        locale=user.locale,
        display_name=user.display_name,
        **({} if user.memory else {"memory": False}),
        created_at=_moment(user.created_at),
    )


def _session_line(user: ExportedUser, session: ExportedSession) -> str:
    return _line(
        "session",
        user,
        session_id=session.session_key,
        expert=session.expert,
        **_space(session.space),
        title=session.title,
        **({"renamed": True} if session.renamed else {}),
        **({"pinned": True} if session.pinned else {}),
        created_at=_moment(session.created_at),
    )


def _message_line(user: ExportedUser, session: ExportedSession, message: ExportedMessage) -> str:
    return _line(
        "message",
        user,
        session_id=session.session_key,
        expert=session.expert,
        **_space(session.space),
        role=message.role,
        content=message.content,
        created_at=_moment(message.created_at),
        speaker=message.speaker,
        # An answer that was given once more has the client's id of the first one.
        external_id=None if message.branch else message.external_id,
        completed=message.completed,
        parts=message.parts,
        **_mark(message),
        **({"pinned": True} if message.pinned else {}),
        **_feedback(message),
    )


def _space(name: str | None) -> dict[str, str]:
    return {} if name is None else {"space": name}


def _mark(message: ExportedMessage) -> dict[str, Any]:
    """That memory keeps nothing of a message, or another text; and the branch that it is on."""
    branch = {"branch": message.branch} if message.branch else {}
    if message.retracted:
        return {"retracted": True, **branch}
    return {"memory_text": message.memory_text, **branch} if message.memory_text is not None else branch


def _feedback(message: ExportedMessage) -> dict[str, Any]:
    if message.rating is None or message.rated_at is None:
        return {}
    given = {"rating": message.rating, "comment": message.comment, "tags": message.tags}
    return {"feedback": {**given, "updated_at": _moment(message.rated_at)}}


def _section_line(user: ExportedUser, section: ExportedSection) -> str:
    pinned = pinned_among(section.id, section.content, section.pins)
    return _line(
        "core_memory",
        user,
        expert=section.expert,
        **_space(section.space),
        section=section.section,
        content=section.content,
        updated_at=_moment(section.updated_at),
        **({"pinned": [{"field": field, "text": text} for field, text in pinned]} if pinned else {}),
    )


def _episode_line(user: ExportedUser, episode: ExportedEpisode) -> str:
    return _line(
        "episode",
        user,
        expert=episode.expert,
        **_space(episode.space),
        session_id=episode.session_key,
        episode_type=episode.episode_type,
        content=episode.content,
        importance=episode.importance,
        origin=episode.origin,
        created_at=_moment(episode.created_at),
        sources=[_source(source) for source in episode.sources],
        **({"archived": True} if episode.archived else {}),
        **({"pinned": True} if episode.pinned else {}),
    )


def _item_line(user: ExportedUser, item: ExportedItem) -> str:
    return _line(
        "store_item",
        user,
        **_space(item.space),
        namespace=parted(item.namespace),
        key=item.key,
        value=json.loads(item.value),
        index=item.index_paths,
        ttl=item.ttl_minutes,
        created_at=_moment(item.created_at),
        updated_at=_moment(item.updated_at),
    )


def _exclusion_line(user: ExportedUser, exclusion: ExportedExclusion) -> str:
    if exclusion.message is not None:
        return _line("exclusion", user, session_id=exclusion.session_key, message=_source(exclusion.message))
    memory = exclusion.memory or {}
    moment = _moment(datetime.fromisoformat(memory["created_at"]))
    return _line(
        "exclusion",
        user,
        session_id=exclusion.session_key,
        memory={"created_at": moment, "sha256": digest_of(memory["content"]).hex()},
    )


def _source(source: dict[str, Any]) -> dict[str, Any]:
    if source["external_id"] is not None:
        return {"session_id": source["session_id"], "external_id": source["external_id"]}
    moment = _moment(datetime.fromisoformat(source["created_at"]))
    return {
        "session_id": source["session_id"],
        "created_at": moment,
        "role": source["role"],
        "sha256": digest_of(source["content"]).hex(),
    }


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def _line(kind: str, user: ExportedUser, **values: Any) -> str:
    return (
        json.dumps({"kind": kind, "user_id": user.name, **values}, ensure_ascii=False, separators=(",", ":"))
        + "\n"
    )
