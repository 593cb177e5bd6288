"""Conversations of DeepSeek, Gemini, SillyTavern, Character.AI and messengers.

Where a record is less than a conversation (an activity, a line), neighbouring ones are put together.
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

Read = tuple[Place, VendorConversation | BadRecord]
"""A conversation with the place of its first record, or why there is none."""

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
"""Between two activities of Gemini of which the second begins a conversation: they name none."""
_ASKED = re.compile(r"(?:Prompted with: |Asked (?:Gemini|Bard): |(?:Prompted|Asked|Said|Branched|Answered) )")
_OTHER_ACTIVITY = re.compile(
    r"(?:Created|Used|Added|Gave|Selected|Shared|Deleted|Viewed|Visited|Searched|Edited|Pinned|Renamed|Exported"
    r"|Updated) "
)
_ATTACHED = re.compile(r"\s*Attached (\d+) files?\.?\s*$")
_BLOCKS = ["p", "br", "li", "div", "tr", "pre", "h1", "h2", "h3", "h4"]


def gemini(found: Iterable[tuple[Place, Any]]) -> Iterator[Read]:
    """Put activities of Gemini together, which an export lists from the newest on."""
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
    return re.sub(r"\s*\n\s*", "\n", soup.get_text()).strip()


def sillytavern(found: Iterable[tuple[Place, Any]]) -> Iterator[Read]:
    """Read the lines of a chat, of which the first says who talks."""
    for name, lines in groupby(found, key=lambda each: each[0].file):
        talk, begun = Talk(other_branches=0), None
        place: Place | None = None
        about: Mapping[str, Any] = {}
        try:
            for at_place, raw in lines:
                place = at_place
                line = mapping(raw, "it")
                if "mes" not in line:
                    about = line
                    begun = _tavern_time(line.get("create_date"))
                    continue
                at = _tavern_time(line.get("send_date"))
                role = SYSTEM if line.get("is_system") else "user" if line.get("is_user") else "assistant"
                said = {**line, "at": at.isoformat() if at else None}
                talk.left_out["other answers"] += max(0, len(line.get("swipes") or ()) - 1)
                text = (optional(line, "mes") or "").strip()
                talk.add(said, role, (text, Counter()), id=f"{len(talk.messages)}", time="at", files=())
            if place is None:
                continue
            title = optional(about, "character_name") or PurePosixPath(name).stem
            yield (
                place,
                talk.conversation(PurePosixPath(name).stem, title, begun or talk.began or place.written_at),
            )
        except BadRecord as error:
            if place is not None:
                yield place, error


_TAVERN = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2}) ?@ ?(\d{1,2})h ?(\d{1,2})m(?: ?(\d{1,2})s)?")
_ENGLISH = "%B %d, %Y %I:%M%p"


def _tavern_time(value: Any) -> datetime | None:
    """A time in one of the forms that the product has had."""
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
    """Read the conversations with one character, as the usual tools dump them."""
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


def telegram(found: Iterable[tuple[Place, Any]]) -> Iterator[Read]:
    """Read chats of Telegram; who the owner is, a chat of two persons shows, or notes to oneself."""
    owner: str | None = None
    for place, raw in found:
        try:
            chat = mapping(raw, "it")
            owner = owner or _owner(chat)
            yield place, _telegram_chat(chat, owner, place.written_at)
        except BadRecord as error:
            yield place, error


def _owner(chat: Mapping[str, Any]) -> str | None:
    other = f"user{chat.get('id')}" if chat.get("type") in {"personal_chat", "bot_chat"} else None
    if other is None and chat.get("type") != "saved_messages":
        return None
    senders = [optional(each, "from_id") for each in rows(chat.get("messages"), "messages")]
    return next((each for each in senders if each and each != other), None)


def _telegram_chat(chat: Mapping[str, Any], owner: str | None, exported_at: datetime) -> VendorConversation:
    messages: list[VendorMessage] = []
    left_out = Counter[str]()
    for each in rows(chat.get("messages"), "messages"):
        text = _telegram_text(each.get("text")).strip()
        left_out[FILES] += any(name in each for name in ("photo", "file", "media_type"))
        if each.get("type") != "message":
            left_out["service messages"] += 1
        elif text:
            time = each.get("date_unixtime")
            at = moment(float(str(time)) if str(time).isdecimal() else each.get("date"), "date")
            speaker = None if optional(each, "from_id") == owner else optional(each, "from") or "?"
            messages.append(VendorMessage("user", text, str(each.get("id")), at, speaker))
    begun = next((message.at for message in messages if message.at), exported_at)
    return VendorConversation(str(chat.get("id")), optional(chat, "name") or "", begun, messages, +left_out)


def _telegram_text(text: Any) -> str:
    """The words of a message, of which some have a format."""
    if isinstance(text, list):
        return "".join(map(_telegram_text, text))
    return str(text.get("text") or "") if isinstance(text, Mapping) else text if isinstance(text, str) else ""


_LINE = re.compile(
    r"[\u200e\u200f]?\[?(\d{1,4})[./-](\d{1,2})[./-](\d{1,4}),?\s+(上午|下午)?(\d{1,2})[:.](\d{2})(?:[:.](\d{2}))?"
    r"\s*([AaPp])?\.?\s?(?(8)[Mm]\.?)\]?\s*(?:[-–]\s)?[\u200e\u200f]?(?:([^:]{1,80}): )?(.*)"
)
_OMITTED = re.compile(
    r"<Media omitted>|<attached: |\b(?:image|video|audio|sticker|document|GIF) omitted|<媒体文件已忽略>|图像已忽略"
)
_CHAT_WITH = re.compile(
    r"(?:WhatsApp (?:Chat|聊天记录)(?: with| -)?|与) ?(.+?)(?: ?的 ?WhatsApp ?聊天记录?)?(?:\.txt|\.zip)?"
    r"(?:/_chat\.txt)?$"
)
_OF_THE_APP = "\u200e"
"""Before what the app says itself under the name of a participant."""
_DAYS_AND_MONTHS = "times whose day and month are a guess"


def whatsapp(text: str, place: Place) -> VendorConversation:
    """Read an exported chat, whose lines have no year first or the order of the phone's language.

    The one who is not in the file's name is its owner, where two talk; else everybody is another participant.
    """
    lines: list[list[str]] = []
    left_out = Counter[str]()
    for written in text.splitlines():
        if found := _LINE.fullmatch(written):
            lines.append([each or "" for each in found.groups()])
        elif lines:
            lines[-1][-1] += f"\n{written}"
        elif written.strip():
            left_out["lines before the first message"] += 1
    if not lines:
        raise BadRecord("holds no line such as 12/03/2024, 10:15 - Anna: Hello")
    month_first = any(int(line[1]) > 12 for line in lines)  # noqa: PLR2004 — months
    if not month_first and not any(int(line[0]) > 12 for line in lines):  # noqa: PLR2004
        month_first = any(line[7] for line in lines)  # a clock of twelve hours
        left_out[_DAYS_AND_MONTHS] = len(lines)
    title = found[1] if (found := _CHAT_WITH.search(place.file)) else PurePosixPath(place.file).stem
    speakers = {line[8] for line in lines if line[8]}
    owners = speakers - {title} if title in speakers and len(speakers) == 2 else set()  # noqa: PLR2004
    messages = []
    for number, line in enumerate(lines):
        if _OMITTED.search(line[9]):
            left_out[FILES] += 1
        elif not line[8] or line[9].startswith(_OF_THE_APP):
            left_out["service messages"] += 1
        elif line[9].strip():
            speaker = None if line[8] in owners else line[8]
            at = _whatsapp_time(line, month_first)
            messages.append(VendorMessage("user", line[9].strip(), f"{at:%Y%m%d%H%M%S}:{number}", at, speaker))
    begun = messages[0].at if messages and messages[0].at else place.written_at
    return VendorConversation(title, title, begun, messages, +left_out)


def _whatsapp_time(line: Sequence[str], month_first: bool) -> datetime:
    first, second, third = map(int, line[:3])
    year, month, day = (first, second, third) if len(line[0]) > 2 else (third, second, first)  # noqa: PLR2004
    if month_first and len(line[0]) <= 2:  # noqa: PLR2004
        month, day = first, second
    hour = int(line[4])
    if line[7] or line[3]:
        hour = hour % 12 + 12 * (line[7].lower() == "p" or line[3] == "下午")
    try:
        return datetime(year + 2000 * (year < 100), month, day, hour, int(line[5]), int(line[6] or 0), tzinfo=UTC)  # noqa: PLR2004
    except ValueError:
        raise BadRecord(f"names a time that there is not: {'/'.join(line[:3])}") from None
