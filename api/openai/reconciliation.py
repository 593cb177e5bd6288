"""Finds the new part of a request: the stored conversation is authoritative, the client's history is evidence.

A message is added; or replaces another, whose tail becomes a branch; or is already in progress. Unknown history is
imported once.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

import orjson
from uuid_utils.compat import uuid7

from api.openai.messages import ClientRequest
from api.openai.models import expert_of
from api.openai.sessions import ClientIds
from graph.turns.runner import TurnRunner
from services.bootstrap import Services
from services.conversations.known_conversations import UNNAMED, KnownConversation, KnownConversations
from services.conversations.resent_history import HistoryMatch, ResentHistory, StoredMessage, compare, meant_at
from services.conversations.turn_values import KEY, KEY_OF_ANOTHER_MESSAGE, other_space
from services.conversations.values import message_digest
from services.errors import Conflict, InvalidInput
from state.turn import EarlierMessage

_LONGEST_SESSION = 128
_MOST_SWITCHES = 8
"""Maximum number of times that a request may switch between branches of its conversation."""


@dataclass(frozen=True)
class Place:
    """The position of a message."""

    session: str
    follow: UUID | None = None
    """Turn to follow, which answers this message already or is about to."""
    key: str | None = None
    """Idempotency key shared by all requests with equal messages that find the conversation in the same state."""
    begins: bool = False
    """Whether the message is taken for the first of its conversation. A request at the same moment may have begun
    the conversation already; so may an earlier one, if the client shows no history."""


@dataclass(frozen=True)
class Reconciliation:
    """Finds the position of a message in the stored conversation, and prepares it."""

    services: Services
    runner: TurnRunner
    tenant_id: UUID
    user_id: str
    expert: str
    space: str | None = None

    @property
    def _known(self) -> KnownConversations:
        return self.services.known_conversations

    def first_place(self, request: ClientRequest, ids: ClientIds) -> Place | None:
        """Return the position of a message without history in a conversation that was not seen here before: the
        beginning.

        If the turn then cannot begin the conversation, `place` finds the position. Returns None if the
        conversation has to be looked for first.
        """
        if ids.session is None or ids.of_ours or request.earlier:
            return None
        if self._known.is_met(self.tenant_id, self.user_id, ids.session):
            return None
        self._known.meet(self.tenant_id, self.user_id, ids.session)
        return Place(ids.session, key=_key(None, None, _digests_of(request).message), begins=True)

    async def place(self, request: ClientRequest, ids: ClientIds) -> Place:
        """Find the position of the message, and cut or switch the conversation so that it ends right before it.

        Raises:
            ModelNotFound: there is no such expert.
            InvalidInput: the conversation belongs to another model or space, the idempotency key to another
                message, or a message of the history is not accepted.
            Conflict: the conversation keeps changing meanwhile.
        """
        resent = _digests_of(request)
        conversation, session = await self._find(request, resent, ids)
        if conversation is not None and self.space not in {None, conversation.space}:
            raise other_space(conversation.space)
        if conversation is None and request.earlier:
            await self._take_in(session, request.earlier, once=True)
            size = len(resent.earlier)
            conversation = await self._known.named(self.tenant_id, self.user_id, session, messages=size)
        if conversation is None:
            begins = ids.session is not None
            return Place(session, key=_key(None, None, resent.message), begins=begins)
        for _ in range(_MOST_SWITCHES):
            meant, branch_id = await self._meant(conversation, resent, ids)
            if branch_id is None:
                return await self._act(conversation, meant, request, resent)
            await self.services.branches.switch(self.tenant_id, conversation.id, branch_id)
            again = await self._known.named(
                self.tenant_id, self.user_id, conversation.session_id, messages=len(resent.earlier)
            )
            conversation = again or conversation
        raise Conflict("The conversation changes while this message is looked at; try again.")

    async def _find(
        self, request: ClientRequest, resent: ResentHistory, ids: ClientIds
    ) -> tuple[KnownConversation | None, str]:
        """The conversation, if there is one, and its name."""
        size = len(resent.earlier)
        if ids.session is not None:
            known = await self._known.named(self.tenant_id, self.user_id, ids.session, messages=size)
            if known is None or known.expert == self.expert:
                return known, ids.session
            if ids.after_turn is not None or ids.of_ours:
                raise InvalidInput("model", f"the conversation belongs to the model {known.expert}")
            # If several models answer in one chat of the client, each has a separate conversation.
            session = f"{ids.session}:{self.expert}"[-_LONGEST_SESSION:]
            return await self._known.named(self.tenant_id, self.user_id, session, messages=size), session
        new = self._new_session(ids.idempotency_key)
        if not request.earlier:
            begun = await self._known.just_begun(self.tenant_id, self.user_id, self.expert, space=self.space)
            if begun is not None and compare(begun.messages, resent) != HistoryMatch():
                return begun, begun.session_id
            return None, new
        answers = [
            digest
            for each, digest in zip(request.earlier, resent.earlier, strict=True)
            if each["role"] == "assistant"
        ]
        found = await self._known.with_answers(
            self.tenant_id, self.user_id, self.expert, answers, space=self.space, messages=size
        )
        if found is not None:
            return found, found.session_id
        return None, new

    def _new_session(self, key: str | None) -> str:
        """Return the name of a new conversation. Requests with one idempotency key get the same name, even at the
        same time."""
        if key is None:
            return f"{UNNAMED}{uuid7().hex}"
        about = "\0".join((self.user_id, self.expert, self.space or "", key))
        return f"{UNNAMED}{sha256(about.encode()).hexdigest()[:32]}"

    async def _meant(
        self, conversation: KnownConversation, resent: ResentHistory, ids: ClientIds
    ) -> tuple[HistoryMatch, UUID | None]:
        """Return the position that the client intends, or the branch to which the conversation must be switched
        first."""
        messages = conversation.messages
        if ids.idempotency_key is not None:
            for there in reversed(messages):
                if there.key == ids.idempotency_key:
                    said = next((each for each in messages if each.turn_id == there.turn_id), there)
                    if said.role == "user" and said.digest != resent.message:
                        raise InvalidInput(KEY, KEY_OF_ANOTHER_MESSAGE)
                    return HistoryMatch(follow=there.turn_id), None
        if ids.parent and messages and messages[-1].external_id == ids.parent:
            return HistoryMatch(), None  # the ordinary case of a client that names its messages
        by_id = None
        if ids.user_message is not None:
            by_id = await self._by_message_id(conversation, resent, ids.user_message)
        if by_id is None and (ids.after_turn is not None or ids.parent is not None):
            by_id = await self._by_parent(conversation, resent, ids)
        if by_id is not None:
            return by_id
        meant = compare(messages, resent)
        if meant.put_aside is None or meant.unknown_from is None:
            return meant, None
        return meant, await self._branch_with(conversation, meant.put_aside, resent.earlier[meant.unknown_from :])

    async def _by_message_id(
        self, conversation: KnownConversation, resent: ResentHistory, external_id: str
    ) -> tuple[HistoryMatch, UUID | None] | None:
        """Find the position by the client's id of a message that is to be answered again."""
        said = await self._known.place_of(self.tenant_id, conversation.id, external_id)
        if said is None:
            return None
        there = next((each for each in conversation.messages if each.turn_id == said[0]), None)
        if there is not None and there.unfinished and there.digest == resent.message:
            return HistoryMatch(follow=said[0]), None
        return HistoryMatch(put_aside=said[0], reason="regenerate"), said[1]

    async def _by_parent(
        self, conversation: KnownConversation, resent: ResentHistory, ids: ClientIds
    ) -> tuple[HistoryMatch, UUID | None] | None:
        """Find the place by the message's parent: a turn of ours, an answer by the client's id, or nothing."""
        messages, turn_id = conversation.messages, None
        if ids.after_turn is not None or ids.parent:
            place = await self._known.place_of(
                self.tenant_id, conversation.id, ids.parent or None, turn_id=ids.after_turn
            )
            if place is None:
                return None
            turn_id, branch_id = place
            if branch_id is not None:
                return HistoryMatch(), branch_id
        following = await self.services.branches.following(self.tenant_id, conversation.id, turn_id)
        start = next((n for n, each in enumerate(messages) if each.turn_id == following), None)
        if ids.after_turn is not None and start is not None:
            under_way = [each for each in messages[start:] if each.unfinished]
            if under_way and all(each.digest != resent.message for each in under_way):
                return HistoryMatch(), None  # requests at once must not take each other's answers away
        if following is not None and start is None:
            return HistoryMatch(put_aside=following, reason="edit"), None
        return (HistoryMatch() if start is None else meant_at(messages, start, resent.message)), None

    async def _branch_with(
        self, conversation: KnownConversation, turn_id: UUID, unknown: Sequence[bytes]
    ) -> UUID | None:
        """Return the branch that has in the place of a turn what the client shows there: at least the question and
        the answer."""
        place = next(n for n, each in enumerate(conversation.messages) if each.turn_id == turn_id)
        before = conversation.messages[place - 1].turn_id if place else None
        branches = await self._known.branches_after(self.tenant_id, conversation.id, before)
        best: tuple[int, UUID | None] = (1, None)
        for branch_id, messages in branches.items():
            best = max(best, (_in_common(messages, unknown), branch_id), key=lambda each: each[0])
        return best[1]

    async def _act(
        self, conversation: KnownConversation, meant: HistoryMatch, request: ClientRequest, resent: ResentHistory
    ) -> Place:
        if meant.follow is not None:
            return Place(conversation.session_id, meant.follow)
        branch_id, stays = conversation.newest_branch_id, conversation.messages
        if meant.put_aside is not None:
            made = await self.runner.put_aside(self.tenant_id, conversation.id, meant.put_aside, meant.reason)
            branch_id = made or await self._newest_branch(conversation)
            ends = next((n for n, each in enumerate(stays) if each.turn_id == meant.put_aside), 0)
            stays = stays[:ends]
        if meant.unknown_from is not None:
            await self._take_in(conversation.session_id, request.earlier[meant.unknown_from :])
        after = stays[-1].turn_id if stays else None
        return Place(conversation.session_id, key=_key(after, branch_id, resent.message))

    async def _newest_branch(self, conversation: KnownConversation) -> UUID | None:
        """Read the newest branch again, because a request at the same moment may have made it."""
        now = await self._known.named(self.tenant_id, self.user_id, conversation.session_id, messages=0)
        return now.newest_branch_id if now else conversation.newest_branch_id

    async def _take_in(self, session: str, earlier: Sequence[EarlierMessage], *, once: bool = False) -> None:
        """Import messages of a history that is not known yet. They are imported `once`, however many requests
        contain them."""
        if earlier:
            await expert_of(self.services, self.tenant_id, self.expert)
            lines = lines_of(self.user_id, session, self.expert, earlier, space=self.space)
            if once:
                for number, (line, said) in enumerate(zip(lines, earlier, strict=True)):
                    digest = message_digest(said["role"], said["content"], said.get("images", ()))
                    line["external_id"] = f"resent:{number}:{digest.hex()}"
            await import_lines(self.services, self.tenant_id, lines, "messages")


def lines_of(
    user_id: str, session: str, expert: str, said: Sequence[EarlierMessage], *, space: str | None = None
) -> list[dict[str, Any]]:
    """Return messages from elsewhere as import lines. Their times are unknown, so they are dated now, in their
    order."""
    now = datetime.now(UTC)
    return [
        {
            "user_id": user_id,
            "session_id": session,
            "expert": expert,
            "space": space,
            "role": each["role"],
            "content": each["content"],
            "speaker": each.get("speaker") or None,
            "parts": [{"type": "image_url", "image_url": {"url": image}} for image in each.get("images", [])],
            "created_at": (now - timedelta(milliseconds=len(said) - place)).isoformat(),
        }
        for place, each in enumerate(said)
    ]


async def import_lines(services: Services, tenant_id: UUID, lines: Sequence[dict[str, Any]], field: str) -> None:
    """Import lines that were made here. Raises `InvalidInput` if a line is not accepted; `field` names the part of
    the request that they come from."""

    async def chunks() -> AsyncIterator[bytes]:
        yield b"\n".join(orjson.dumps(line) for line in lines)

    report = await services.importer.run(tenant_id, chunks())
    if report.errors:
        raise InvalidInput(field, report.errors[0].reason)


def _key(after: UUID | None, branch_id: UUID | None, message: bytes) -> str:
    """Return the idempotency key of a message, made from the turn that it follows and the conversation's newest
    branch."""
    return f"v1:{after.hex if after else ''}:{branch_id.hex if branch_id else ''}:{message.hex()}"


def _digests_of(request: ClientRequest) -> ResentHistory:
    return ResentHistory(
        [message_digest(each["role"], each["content"], each.get("images", ())) for each in request.earlier],
        message_digest("user", request.message, request.images),
    )


def _in_common(messages: Sequence[StoredMessage], unknown: Sequence[bytes]) -> int:
    """How many messages a branch and what a client shows have in common, from the beginning."""
    count = 0
    for message, digest in zip(messages, unknown, strict=False):
        if message.digest != digest:
            break
        count += 1
    return count
