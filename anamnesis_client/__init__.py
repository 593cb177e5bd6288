"""The Python client of a running service: chat, streams that survive broken connections, memory, transfer.

    from anamnesis_client import Anamnesis

    with Anamnesis("http://127.0.0.1:8000", user="me") as client:
        print(client.chat("My dog is called Bruno.").text)

`AsyncAnamnesis` is the same with `await`.
"""

from anamnesis_client.asynchronous import AsyncAnamnesis
from anamnesis_client.errors import ClientError, ServiceError, TurnFailed, Unreachable
from anamnesis_client.models import (
    Answer,
    Event,
    FoundMemory,
    ImportReport,
    LineError,
    MemoryChange,
    Section,
    WrittenMemory,
)
from anamnesis_client.synchronous import Anamnesis

__all__ = [
    "Anamnesis",
    "Answer",
    "AsyncAnamnesis",
    "ClientError",
    "Event",
    "FoundMemory",
    "ImportReport",
    "LineError",
    "MemoryChange",
    "Section",
    "ServiceError",
    "TurnFailed",
    "Unreachable",
    "WrittenMemory",
]
