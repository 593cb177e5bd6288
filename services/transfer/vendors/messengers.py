"""Reads chats of Telegram and WhatsApp; words of others get their names."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from services.transfer.vendors.archive import Place
from services.transfer.vendors.records import (
    FILES,
    BadRecord,
    Read,
    VendorConversation,
    VendorMessage,
    mapping,
    moment,
    optional,
    rows,
)


def telegram(found: Iterable[tuple[Place, Any]]) -> Iterator[Read]:
    """Read chats of Telegram; a chat of two persons, or notes to oneself, show who the owner is."""
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
    """Return the words of a message, some of which may be formatted."""
    if isinstance(text, list):
        return "".join(map(_telegram_text, text))
    return str(text.get("text") or "") if isinstance(text, Mapping) else text if isinstance(text, str) else ""


_LINE = re.compile(
    r"[\u200e\u200f]?\[?(\d{1,4})[./-](\d{1,2})[./-](\d{1,4}),?\s+(?:à\s+)?"
    r"(凌晨|清晨|早上|上午|中午|下午|晚上)?(\d{1,2})[:.](\d{2})(?:[:.](\d{2}))?"
    r"\s*([AaPp])?\.?\s?(?(8)[Mm]\.?)\]?\s*(?:[-–]\s)?[\u200e\u200f]?(?:([^:]{1,80}): )?(.*)"
)
_OMITTED = re.compile(
    r"(?:\A|\s)\u200e?(?:<(?:attached: [^>\n]{1,200}|Media omitted|媒体文件已忽略)>|图像已忽略"
    r"|[^\n]{0,200}\.\w{2,5} \(file attached\)"
    r"|(?:image|video|audio|sticker|document|GIF|Contact card) omitted)\s*\Z"
)
"""Note of a file at the end of a message, after its caption."""
_REMOVED = re.compile(
    r"\u200e?(?:You deleted this message|This message was deleted|此消息已删除|您已删除此消息)[.。]?"
)
_EDITED = re.compile(r"\s?\u200e?<(?:This message was edited|此消息已编辑)>\Z")
_CHAT_WITH = re.compile(
    r"(?:WhatsApp (?:Chat|聊天记录)(?: with| -)?|与) ?(.+?)(?: ?的 ?WhatsApp ?聊天记录?)?(?:\.txt|\.zip)?"
    r"(?:/_chat\.txt)?$"
)
_OF_THE_APP = "\u200e"
"""Mark before words of the app itself under a participant's name."""
_DAYS_AND_MONTHS = "times whose day and month are a guess"


def whatsapp(text: str, place: Place) -> VendorConversation:
    """Read an exported chat; the date in its lines has the order of the phone's language. In a chat of two, the
    owner is the one who is not in the file's name; otherwise everybody is another participant."""
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
        month_first = any(line[7] for line in lines)  # a clock of twelve hours, as in the USA
        left_out[_DAYS_AND_MONTHS] = len(lines)
    title = found[1] if (found := _CHAT_WITH.search(place.file)) else PurePosixPath(place.file).stem
    speakers = {line[8] for line in lines if line[8]}
    owners = speakers - {title} if title in speakers and len(speakers) == 2 else set()  # noqa: PLR2004
    messages = []
    for number, line in enumerate(lines):
        text = _EDITED.sub("", line[9])
        if line[8] and (found := _OMITTED.search(text)):
            left_out[FILES] += 1
            text = text[: found.start()]
        if not line[8] or text.startswith(_OF_THE_APP) or _REMOVED.fullmatch(text):
            left_out["service messages"] += 1
        elif text.strip():
            speaker = None if line[8] in owners else line[8]
            at = _whatsapp_time(line, month_first)
            messages.append(VendorMessage("user", text.strip(), f"{at:%Y%m%d%H%M%S}:{number}", at, speaker))
    begun = messages[0].at if messages and messages[0].at else place.written_at
    return VendorConversation(title, title, begun, messages, +left_out)


def _whatsapp_time(line: Sequence[str], month_first: bool) -> datetime:
    first, second, third = map(int, line[:3])
    year, month, day = (first, second, third) if len(line[0]) > 2 else (third, second, first)  # noqa: PLR2004
    if month_first and len(line[0]) <= 2:  # noqa: PLR2004
        month, day = first, second
    hour = int(line[4])
    if line[7] or line[3]:
        hour = hour % 12 + 12 * (line[7].lower() == "p" or line[3] in {"中午", "下午", "晚上"})
    try:
        return datetime(year + 2000 * (year < 100), month, day, hour, int(line[5]), int(line[6] or 0), tzinfo=UTC)  # noqa: PLR2004
    except ValueError:
        raise BadRecord(f"names a time that there is not: {'/'.join(line[:3])}") from None
