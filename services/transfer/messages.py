"""Imported messages: the keys that recognise them, and the exchanges that they form."""

import hashlib
import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID, uuid5

from uuid_utils.compat import uuid7

from services.conversations.values import image_part, message_tokens
from services.encryption.marks import Fingerprint
from services.llm.token_estimates import IMAGE_TOKENS
from services.transfer.lines import MessageLine


def digest_of(content: str) -> bytes:
    """Return the SHA-256 of a message's content."""
    return hashlib.sha256(content.encode()).digest()


def import_key(
    session_id: str, *, external_id: str | None, at: datetime | None, role: str | None, sha256: str | None
) -> str:
    """Return the key that recognises a repeated message: its external id, or else its time, role and content.

    `at` is in UTC, `sha256` is the digest of the content in hexadecimal digits.
    """
    if external_id is not None:
        return f"external:{external_id}"
    stated = json.dumps([session_id, at.isoformat() if at else None, role, sha256])
    return f"sha256:{hashlib.sha256(stated.encode()).hexdigest()}"


def stored_key(key: str) -> str:
    """Return the key to store: if words are encrypted, a key made of words is replaced."""
    return Fingerprint(key) if key.startswith("sha256:") else key


@dataclass(frozen=True)
class ImportedMessage:
    """A message to be stored."""

    number: int
    """Number of its line."""
    conversation_id: UUID
    line: MessageLine
    at: datetime
    deleted: bool = False
    """Whether its words were forgotten for good: an empty message then keeps its place."""
    id: UUID = field(default_factory=uuid7)
    """Id in the order of the lines, which orders messages of the same moment."""

    @property
    def parts(self) -> list[dict[str, Any]]:
        """Return its images in the form that is stored."""
        return [] if self.deleted else [image_part(part.image_url.url) for part in self.line.parts]

    @property
    def content(self) -> str:
        """Return its words in the form that is stored."""
        return "" if self.deleted else self.line.content

    @cached_property
    def token_count(self) -> int:
        """Return an estimate of its tokens in a prompt."""
        return message_tokens(self.content) + IMAGE_TOKENS * len(self.parts)

    @property
    def branch_id(self) -> UUID | None:
        """Return the id of its branch, which is the same for every import into this conversation."""
        branch = self.line.branch
        return uuid5(self.conversation_id, f"branch {branch}") if branch else None

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of its content."""
        return digest_of(self.line.content)

    @cached_property
    def key(self) -> str:
        """Return the key that recognises a repetition."""
        line = self.line
        return import_key(
            line.session_id, external_id=line.external_id, at=self.at, role=line.role, sha256=self.digest.hex()
        )


@dataclass
class Exchange:
    """A user's message with the answers that follow it; it becomes one turn, and one episode."""

    messages: list[ImportedMessage]
    turn_id: UUID = field(default_factory=uuid7)
    """Id of the turn, and of its episode, so that an answer in a later import finds both."""

    @property
    def begins_with_answer(self) -> bool:
        """Return whether the answered message is missing here."""
        return self.messages[0].line.role == "assistant"

    @property
    def complete(self) -> list[ImportedMessage]:
        """Return the messages of the episode: none that is incomplete, retracted or on a branch."""
        return [
            message
            for message in self.messages
            if message.line.completed and not message.line.retracted and message.line.branch is None
        ]


def exchanges_of(messages: Iterable[ImportedMessage], known: Collection[int]) -> list[Exchange]:
    """Return the exchanges of the messages, without those that are already stored.

    Within a conversation messages are in the order of time, and of lines if the times are equal. What follows a
    stored message begins its own exchange.
    """
    exchanges: list[Exchange] = []
    open_ones: dict[UUID, Exchange] = {}
    for message in sorted(messages, key=lambda each: (each.at, each.number)):
        before = open_ones.get(message.conversation_id)
        if message.number in known:
            open_ones.pop(message.conversation_id, None)
        elif before is None or message.line.role == "user":
            exchange = Exchange([message])
            exchanges.append(exchange)
            open_ones[message.conversation_id] = exchange
        else:
            before.messages.append(message)
    return exchanges
