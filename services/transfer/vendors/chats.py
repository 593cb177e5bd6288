"""Reads conversations of DeepSeek, Gemini, SillyTavern and Character.AI.

If a record is less than a conversation (an activity, a line), neighbouring records are put together.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import PurePosixPath
from typing import Any

from services.transfer.vendors.archive import Place
from services.transfer.vendors.records import (
    FILES,
    SYSTEM,
    THOUGHTS,
    TOOL,
    BadRecord,
    Read,
    Talk,
    VendorConversation,
    VendorMessage,
    mapping,
    moment,
    named,
    newest,
    optional,
    path_to,
    rows,
)

_FRAGMENTS = {"REQUEST": "user", "RESPONSE": "assistant"}


def deepseek(record: Mapping[str, Any], exported_at: datetime) -> VendorConversation:
    """Read a conversation: a tree of messages, each made of fragments."""
    nodes = {
        key: mapping(node, f"mapping.{key}") for key, node in mapping(record.get("mapping"), "mapping").items()
    }
    parents = {key: optional(node, "parent") for key, node in nodes.items()}
    said = {
        key: mapping(node["message"], f"mapping.{key}.message")
        for key, node in nodes.items()
        if node.get("message")
    }
    path = path_to(
        newest({key: str(each.get("inserted_at")) for key, each in said.items()}, set(parents.values())), parents
    )
    talk = Talk(other_branches=len(said.keys() - set(path)))
    for key in (key for key in path if key in said):
        fragments = rows(said[key].get("fragments"), f"mapping.{key}.message.fragments")
        kinds = [str(each.get("type")) for each in fragments]
        role = "user" if "REQUEST" in kinds else "assistant"
        words = [optional(each, "content") or "" for each in fragments if each.get("type") in _FRAGMENTS]
        others = Counter(THOUGHTS if kind == "THINK" else TOOL for kind in kinds if kind not in _FRAGMENTS)
        talk.add(said[key], role, ("\n".join(words).strip(), others), id=key, time="inserted_at", files=("files",))
    created_at = moment(record.get("inserted_at"), "inserted_at") or talk.began or exported_at
    return talk.conversation(named(record, "id"), optional(record, "title"), created_at)


_SILENCE = timedelta(minutes=30)
"""Time between two activities of Gemini after which a new conversation begins: activities name none."""
_ASKED = re.compile(r"(?:Prompted with: |Asked (?:Gemini|Bard): |(?:Prompted|Asked|Said|Branched|Answered) )")
_OTHER_ACTIVITY = re.compile(
    r"(?:Created|Used|Added|Gave|Selected|Shared|Deleted|Viewed|Visited|Searched|Edited|Pinned|Renamed|Exported"
    r"|Updated) "
)
_ATTACHED = re.compile(r"\s{0,9}Attached (\d{1,4}) files?\.?\s{0,9}$")
_BLOCKS = ["p", "br", "li", "div", "tr", "pre", "h1", "h2", "h3", "h4"]


def gemini(found: Iterable[tuple[Place, Any]]) -> Iterator[Read]:
    """Put activities of Gemini together; an export lists the newest first."""
    waiting: list[tuple[datetime, Mapping[str, Any]]] = []
    at_place, left_out = None, Counter[str]()
    for place, raw in found:
        try:
            record = mapping(raw, "it")
            at = moment(named(record, "time"), "time")
        except BadRecord as error:
            yield place, error
            continue
        labels = " ".join(map(str, [record.get("header"), *(record.get("products") or ())]))
        title = optional(record, "title") or ""
        if not re.search("Gemini|Bard", labels) or _OTHER_ACTIVITY.match(title) or not title or at is None:
            left_out["other activities"] += 1
            continue
        if waiting and abs(waiting[-1][0] - at) > _SILENCE:
            yield at_place or place, _of_activities(waiting, left_out)
            waiting, left_out = [], Counter()
        at_place = place if not waiting else at_place
        waiting.append((at, record))
    if waiting and at_place:
        yield at_place, _of_activities(waiting, left_out)


def _of_activities(
    found: Sequence[tuple[datetime, Mapping[str, Any]]], left_out: Counter[str]
) -> VendorConversation:
    messages = []
    for at, record in sorted(found, key=lambda each: each[0]):
        asked = _ASKED.sub("", optional(record, "title") or "", count=1)
        if attached := _ATTACHED.search(asked):
            left_out[FILES] += int(attached[1])
        key = at.isoformat()
        messages.append(VendorMessage("user", _ATTACHED.sub("", asked), f"{key}:user", at))
        items = record.get("safeHtmlItem")
        pages = (
            [each.get("html") for each in items if isinstance(each, Mapping)] if isinstance(items, list) else []
        )
        if answer := "\n".join(_words(page) for page in pages if isinstance(page, str)).strip():
            messages.append(VendorMessage("assistant", answer, f"{key}:assistant", at))
        else:
            left_out["answers that the export lacks"] += 1
    begun = messages[0].at or datetime.now(UTC)
    return VendorConversation(begun.isoformat(), messages[0].text[:80], begun, messages, +left_out)


def _words(page: str) -> str:
    from bs4 import BeautifulSoup  # noqa: PLC0415 — of one vendor alone

    soup = BeautifulSoup(page, "html.parser")
    for block in soup(_BLOCKS):
        block.insert_after("\n")
    return "\n".join(filter(None, map(str.strip, soup.get_text().splitlines())))


def sillytavern(found: Iterable[tuple[Place, Any]]) -> Iterator[Read]:
    """Read the lines of a chat; the first line names the speakers."""
    for name, lines in groupby(found, key=lambda each: each[0].file):
        talk, begun = Talk(other_branches=0), None
        place: Place | None = None
        about: Mapping[str, Any] = {}
        character = ""
        try:
            for at_place, raw in lines:
                place = at_place
                line = mapping(raw, "it")
                if "mes" not in line:
                    about = line
                    begun = _tavern_time(line.get("create_date"))
                    continue
                at = _tavern_time(line.get("send_date"))
                if not (character or line.get("is_user") or line.get("is_system")):
                    character = optional(line, "name") or ""
                role = SYSTEM if line.get("is_system") else "user" if line.get("is_user") else "assistant"
                said = {**line, "at": at.isoformat() if at else None}
                talk.left_out["other answers"] += max(0, len(line.get("swipes") or ()) - 1)
                text = (optional(line, "mes") or "").strip()
                talk.add(said, role, (text, Counter()), id=f"{len(talk.messages)}", time="at", files=())
            if place is None:
                continue
            title = optional(about, "character_name") or ""
            if title in {"", _UNUSED}:
                title = character or PurePosixPath(name).stem
            yield (
                place,
                talk.conversation(PurePosixPath(name).stem, title, begun or talk.began or place.written_at),
            )
        except BadRecord as error:
            if place is not None:
                yield place, error


_UNUSED = "unused"
"""Word that newer versions write in place of the names."""
_TAVERN = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2}) ?@ ?(\d{1,2})h ?(\d{1,2})m(?: ?(\d{1,2})s)?")
_ENGLISH = "%B %d, %Y %I:%M%p"


def _tavern_time(value: Any) -> datetime | None:
    """Read a time in any of the forms that SillyTavern has used."""
    if isinstance(value, str) and (found := _TAVERN.match(value)):
        year, month, day, hour, minute, second = (int(each or 0) for each in found.groups())
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    if isinstance(value, str):
        try:
            return datetime.strptime(value.strip(), _ENGLISH).replace(tzinfo=UTC)
        except ValueError:
            pass
    return moment(value, "send_date")


def characterai(record: Mapping[str, Any], exported_at: datetime) -> list[VendorConversation]:
    """Read the conversations with one character, in the form that the usual tools write."""
    held = record.get("histories")
    histories = rows(held.get("histories") if isinstance(held, Mapping) else held, "histories")
    made = []
    for number, history in enumerate(histories):
        talk, title = Talk(other_branches=0), ""
        for at, each in enumerate(rows(history.get("msgs"), f"histories[{number}].msgs")):
            speaker = mapping(each.get("src"), "src")
            title = title or ("" if speaker.get("is_human") else optional(speaker, "name") or "")
            role = "user" if speaker.get("is_human") else "assistant"
            said = ((optional(each, "text") or "").strip(), Counter[str]())
            talk.add(each, role, said, id=optional(each, "uuid", "id") or str(at), time="created", files=())
        created_at = moment(history.get("created"), "created") or talk.began or exported_at
        key = optional(history, "external_id") or f"{title or 'character'}:{number}"
        made.append(talk.conversation(key, title, created_at))
    return made
