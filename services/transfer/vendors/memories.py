"""Reads single memories of Mem0, Zep, Letta, LangMem and Hindsight, with their times and notes."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from services.json_levels import shallow_json
from services.transfer.vendors.records import (
    SYSTEM,
    THOUGHTS,
    TOOL,
    BadRecord,
    Record,
    Talk,
    VendorMemory,
    mapping,
    moment,
    named,
    optional,
    rows,
    text_in,
)

_Fields = Mapping[str, Any]


def mem0(record: _Fields, exported_at: datetime) -> VendorMemory:
    """Read a memory, as `get_all` and Mem0's exports list it, with its metadata, categories and last day."""
    text = named(record, "memory", "text", "data").strip()
    noted = dict(record["metadata"]) if isinstance(record.get("metadata"), Mapping) else {}
    if isinstance(categories := record.get("categories"), list) and categories:
        noted.setdefault("categories", ", ".join(map(str, categories)))
    until = moment(record.get("expiration_date"), "expiration_date")
    created_at = _first(record, "created_at", "updated_at") or exported_at
    return VendorMemory(named(record, "id"), _marked(text, noted, until), created_at, optional(record, "user_id"))


def zep(record: _Fields, exported_at: datetime) -> VendorMemory:
    """Read a fact of a graph (an edge), which may have a last day."""
    created_at = _first(record, "valid_at", "created_at") or exported_at
    until = moment(record.get("invalid_at"), "invalid_at")
    return VendorMemory(named(record, "uuid", "uuid_"), _marked(named(record, "fact"), {}, until), created_at)


def hindsight(record: _Fields, exported_at: datetime) -> VendorMemory:
    """Read a fact of a memory bank."""
    noted = {"context": record.get("context")} if optional(record, "context") else {}
    created_at = _first(record, "mentioned_at", "occurred_start", "date") or exported_at
    return VendorMemory(named(record, "id"), _marked(named(record, "text"), noted, None), created_at)


def langmem(record: _Fields, exported_at: datetime) -> VendorMemory:
    """Read an item of a LangGraph store: a memory of LangMem, or a value with `content`."""
    value = mapping(record.get("value"), "value")
    content = value.get("content")
    if isinstance(content, Mapping):
        text = optional(content, "content") or "; ".join(
            f"{name}: {each}" for name, each in content.items() if each
        )
    else:
        text = named(value, "content", "text", "memory")
    if not text.strip():
        raise BadRecord("value has no content")
    return VendorMemory(named(record, "key"), text, _first(record, "created_at", "updated_at") or exported_at)


def letta(record: _Fields, exported_at: datetime) -> list[Record]:
    """Read an agent file: the statements of its blocks about a person, and the foreground messages."""
    agents = rows(record.get("agents") or [record], "agents")
    blocks = rows(record.get("blocks") or agents[0].get("core_memory") or [], "blocks")
    made: list[Record] = []
    for agent in agents:
        name, kind = optional(agent, "name", "id") or "agent", str(agent.get("agent_type"))
        talk = Talk(other_branches=0)
        for number, each in enumerate(rows(agent.get("messages") or [], "messages")):
            role, text, others = _letta_message(each, thinks=kind.startswith("memgpt"))
            key = optional(each, "id") or str(number)
            role = "messages of a background agent" if kind in _BACKGROUND else role
            talk.add(each, role, (text, others), id=key, time="created_at", files=())
        talk.left_out["memory blocks about the agent"] += len(blocks) - sum(map(_is_of_human, blocks))
        created_at = moment(agent.get("created_at"), "created_at") or talk.began or exported_at
        made.append(talk.conversation(name, name, created_at))
    for each in blocks:
        if _is_of_human(each) and (value := optional(each, "value")):
            at = _first(each, "updated_at", "created_at") or exported_at
            made += [
                VendorMemory(f"{optional(each, 'id') or 'human'}:{line}", line, at) for line in _statements(value)
            ]
    return made


_BACKGROUND = frozenset({"sleeptime_agent", "voice_sleeptime_agent"})
_REMINDER = "<system-reminder>"
_OPEN = (":", "：", ": ?")


def _is_of_human(block: _Fields) -> bool:
    return "human" in str(block.get("label")).split("/")


def _statements(value: str) -> Iterator[str]:
    """Yield the lines of a block below their headings, except lines that do not say what they are about."""
    heading = ""
    for line in map(str.strip, value.splitlines()):
        if line.startswith("#"):
            heading = f"{line.lstrip('#').strip()}: "
        elif line and not line.rstrip("*").endswith(_OPEN):
            yield f"{heading}{line.removeprefix('- ').removeprefix('* ')}"


def _letta_message(said: _Fields, *, thinks: bool) -> tuple[str, str, Counter[str]]:
    """Return role, text and other parts of a message of Letta.

    A user's text may be wrapped in JSON; an agent's words are the argument of a tool. With `thinks`, the agent's
    text holds its thoughts, so it says nothing.
    """
    content = said.get("content")
    if isinstance(content, list):
        content = [each for each in content if not str(mapping(each, "content").get("text")).startswith(_REMINDER)]
    text, others = text_in(content)
    role = str(said.get("role"))
    if role == "user" and not text:
        return SYSTEM, text, others
    if role == "user" and text.startswith("{"):
        inside = within(text)
        if inside.get("type") not in {None, "user_message"}:
            return SYSTEM, text, others
        text = optional(inside, "message") or text
    if role == "assistant":
        calls = said.get("tool_calls")
        others[THOUGHTS] += bool(thinks and text)
        text = "" if thinks else text
        for call in calls if isinstance(calls, list) else ():
            function = call.get("function") if isinstance(call, Mapping) else None
            if isinstance(function, Mapping) and function.get("name") == "send_message":
                text = optional(within(str(function.get("arguments"))), "message") or ""
            else:
                others[TOOL] += 1
    return role if role in {"user", "assistant", TOOL} else SYSTEM, text, others


def within(text: str) -> _Fields:
    """Return the JSON object in a text; an empty one if there is none."""
    try:
        found = shallow_json(text)
    except ValueError:
        return {}
    return found if isinstance(found, Mapping) else {}


def _first(record: _Fields, *names: str) -> datetime | None:
    return next((at for name in names if (at := moment(record.get(name), name))), None)


def _marked(text: str, noted: Mapping[str, Any], until: datetime | None) -> str:
    """Return a memory with its notes, and with its last day at the end, where it is read again."""
    plain = [
        f"{name}: {value}" for name, value in noted.items() if isinstance(value, str | int | float) and value != ""
    ]
    marks: Sequence[str] = [f"[{'; '.join(plain)}]"] if plain else []
    return " ".join([text.strip(), *marks, *([f"(until {until:%Y-%m-%d})"] if until else [])])
