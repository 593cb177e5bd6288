"""What `anamnesis chat` asks the service beside answers."""

from http import HTTPStatus
from typing import Any

from anamnesis_client import Anamnesis, ServiceError
from api.cli.memory import core_memory, written_memories
from api.cli.service import Refused

Record = dict[str, Any]


def conversations(service: Anamnesis, user: str, *, limit: int | None = None) -> list[Record]:
    """Return the user's conversations, newest first."""
    return list(service.items("conversations", params={"user_id": user}, limit=limit))


def conversation(service: Anamnesis, user: str, session: str) -> Record | None:
    """Return the user's conversation of this name."""
    return next(service.items("conversations", params={"user_id": user, "session_id": session}), None)


def unused_name(service: Anamnesis, user: str) -> str:
    """Return a name that no conversation of the user has yet: `terminal-2` and so on."""
    names = {each["session_id"] for each in conversations(service, user)}
    return next(name for number in range(2, len(names) + 3) if (name := f"terminal-{number}") not in names)


def last_messages(service: Anamnesis, conversation_id: str, count: int) -> list[Record]:
    """Return the last messages of a conversation, oldest first."""
    last: list[Record] = []
    for message in service.items("conversations", conversation_id, "messages"):
        last = [*last, message][-count:]
    return last


def expert(service: Anamnesis, name: str) -> Record:
    """Return an expert."""
    try:
        found: Record = service.request("GET", "experts", name)
    except ServiceError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            raise Refused(f"There is no expert {name}; see: anamnesis experts list", wrong_use=True) from None
        raise
    return found


def memory(
    service: Anamnesis, user: str, expert: str, space: str | None, *, limit: int
) -> tuple[list[Record], list[Record]]:
    """Return the sections of core memory and the newest written memories; none for an unknown user."""
    try:
        sections = core_memory(service, user, expert, space)
        return sections, written_memories(service, user, expert, space, limit)
    except ServiceError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return [], []
        raise
