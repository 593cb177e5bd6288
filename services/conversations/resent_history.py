"""Compares the history that a client resends with the stored conversation. Pure functions.

The stored conversation is authoritative; the resent history is evidence. Missing old messages prove nothing,
because clients cut and compact what they send; different messages do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from services.conversations.values import Role

BranchReason = Literal["edit", "regenerate", "switch"]
_ENOUGH = 2
"""Consecutive messages that identify a position inside a conversation: a question and its answer."""


@dataclass(frozen=True)
class StoredMessage:
    """A message of the conversation's current course."""

    id: UUID
    turn_id: UUID
    role: Role
    digest: bytes
    external_id: str | None = None
    answered: bool = True
    """Whether its turn has a complete answer; clients may leave out other messages, and those said unasked."""
    unfinished: bool = False
    """Whether its turn has yet to end."""
    key: str | None = None
    """Idempotency key of its turn."""


@dataclass(frozen=True)
class ResentHistory:
    """History that a client sends, as digests."""

    earlier: Sequence[bytes]
    """Oldest first, without the newest message."""
    message: bytes
    """Digest of the newest message."""


@dataclass(frozen=True)
class HistoryMatch:
    """The client's intention, as its history shows it."""

    follow: UUID | None = None
    """The running turn with this message."""
    put_aside: UUID | None = None
    """The first turn of the tail that the message replaces."""
    reason: BranchReason = "edit"
    unknown_from: int | None = None
    """Index of the first earlier message that is not in the conversation; it and the later ones are stored."""


def compare(stored: Sequence[StoredMessage], resent: ResentHistory) -> HistoryMatch:
    """Determine what a client intends, from the stored conversation and the resent history.

    Args:
        stored: messages of the current course, oldest first; the oldest ones may be missing.
        resent: what the client sends.
    """
    earlier = resent.earlier
    if not earlier:
        return _without_history(stored, resent.message)
    matched, place = _match(stored, 0, earlier)
    if matched == len(earlier):
        return meant_at(stored, place, resent.message)
    inside = _of_cut_history(stored, resent)
    if inside is not None or matched == 0:  # an unrelated history is no evidence
        return inside or HistoryMatch()
    if place == len(stored):  # the conversation continued elsewhere
        return HistoryMatch(unknown_from=matched)
    if stored[place].role == "assistant":  # the client changed an answer: its question is stored again with it
        matched -= 1
    return HistoryMatch(put_aside=stored[place].turn_id, reason="edit", unknown_from=matched)


def _of_cut_history(stored: Sequence[StoredMessage], resent: ResentHistory) -> HistoryMatch | None:
    """Interpret a history whose beginning was cut off or compacted; None = it is not one."""
    earlier = resent.earlier
    for start in range(len(stored) - 1, 0, -1):
        if stored[start].digest == earlier[0]:
            count, end = _match(stored, start, earlier)
            if count == len(earlier):
                return meant_at(stored, end, resent.message, sure=len(earlier) >= _ENOUGH)
    newest = max((n for n, each in enumerate(stored) if each.answered), default=-1)
    if newest >= 0 and stored[newest].role == "assistant" and stored[newest].digest == earlier[-1]:
        return meant_at(stored, newest + 1, resent.message)
    return None


def meant_at(stored: Sequence[StoredMessage], place: int, message: bytes, *, sure: bool = True) -> HistoryMatch:
    """Interpret a message that follows what precedes `place`; if not `sure` of the position, it is only added."""
    for there in stored[place:]:
        if there.role == "user" and there.digest == message and (sure or not there.answered):
            return _again(there)
        if there.answered:
            return HistoryMatch(put_aside=there.turn_id, reason="edit") if sure else HistoryMatch()
    return HistoryMatch()


def _without_history(stored: Sequence[StoredMessage], message: bytes) -> HistoryMatch:
    """Interpret a message without history: the client may never send any, so only one position is certain."""
    for there in reversed(stored):
        if there.answered:
            break
        if there.role == "user" and there.digest == message:
            return _again(there)
    is_one_turn = bool(stored) and all(each.turn_id == stored[0].turn_id for each in stored)
    return _again(stored[0]) if is_one_turn and stored[0].digest == message else HistoryMatch()


def _again(there: StoredMessage) -> HistoryMatch:
    """Interpret a repeated message: its turn is in progress, or it is to be answered again."""
    return (
        HistoryMatch(follow=there.turn_id)
        if there.unfinished
        else HistoryMatch(put_aside=there.turn_id, reason="regenerate")
    )


def _match(stored: Sequence[StoredMessage], start: int, earlier: Sequence[bytes]) -> tuple[int, int]:
    """Count the earlier messages that match the conversation from `start`, and return the next position."""
    place, count = start, 0
    while count < len(earlier) and place < len(stored):
        if stored[place].digest == earlier[count]:
            count += 1
        elif stored[place].answered:
            break
        place += 1
    return count, place
