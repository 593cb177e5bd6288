"""Values as callers give them, in a request or an import, with their limits; messages before they are stored."""

import hashlib
import re
import string
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import MAXYEAR, MINYEAR, datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, StringConstraints

from services.errors import InvalidInput
from services.llm.token_estimates import MESSAGE_OVERHEAD, count_tokens
from services.text.elements import without_elements
from services.time_reference.local_days import time_zone
from services.validation import RULE, composed, is_id, no_nul

Given = TypeVar("Given")

MAX_MESSAGE_CHARACTERS = 1_000_000
"""Maximum characters of a message, whatever ANAMNESIS_MESSAGE_CHARACTERS says."""
MAX_SYSTEM_PROMPT_TOKENS = 1000
MAX_PROMPT_CHARACTERS = 32_000
"""Maximum characters of a system prompt; a longer one certainly has too many tokens, so they are not counted."""
MAX_IMAGES = 8
MAX_SPACE_CHARACTERS = 64
MAX_IMAGE_BYTES = 8 * 1024 * 1024
MAX_IMAGES_BYTES = 2 * MAX_IMAGE_BYTES
"""Maximum bytes of all images of a message, and of the images of earlier messages that a prompt shows."""

_BASE64 = f"{string.ascii_letters}{string.digits}+/".encode()
_MOST_PADDING = 2
_PIECE = 64 * 1024
_MOST_OF_ALL = MAX_IMAGES_BYTES + 16 * 1024
"""Maximum length of message content with images: addresses, and the words before their data."""
_DATA_URL = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,", re.ASCII)
_REMOTE_URL = re.compile(r"https?://[^\s]{1,2000}", re.ASCII)

Role = Literal["user", "assistant"]

_BYTES = 16
_CHANGED = ("details", "think", "thinking")
"""Elements that clients fold an answer's reasoning into. Clients also change spaces and Unicode composition;
the message remains the same."""


def not_blank(text: str) -> str:
    """Validate a text that must not be blank."""
    if not text.strip():
        raise ValueError("is empty")
    return text


def check_length(message: str, most: int) -> None:
    """Check a message against the setting. Raises `InvalidInput` if it is longer."""
    if len(message) > most:
        reason = f"has {len(message)} characters; at most {most} are accepted (ANAMNESIS_MESSAGE_CHARACTERS)"
        raise InvalidInput("message", reason)


def _is_image(image: str) -> str:
    if match := _DATA_URL.match(image):
        size = _size_of_base64(image[match.end() :])
        if size > MAX_IMAGE_BYTES:
            raise ValueError(f"has {size} bytes; at most {MAX_IMAGE_BYTES} are accepted")
    elif not _REMOTE_URL.fullmatch(image):
        raise ValueError("is neither an http(s) address nor a data URL of a PNG, JPEG, GIF or WebP image")
    return image


def _size_of_base64(text: str) -> int:
    """Return the bytes that a Base64 text stands for, without decoding it. Raises `ValueError` if it is no
    Base64."""
    digits = text.rstrip("=")
    whole = len(text) % 4 == 0 and len(text) - len(digits) <= _MOST_PADDING
    # Done in pieces that fit into the processor's cache.
    pieces = (digits[begin : begin + _PIECE] for begin in range(0, len(digits), _PIECE))
    if not (text and whole and text.isascii()) or any(piece.encode().translate(None, _BASE64) for piece in pieces):
        raise ValueError("is not valid base64")
    return len(digits) * 3 // 4


def images_that_fit(images: Given) -> Given:
    """Check how large the images of one message are in all, before each is looked at. Raises `ValueError` if
    they are too large."""
    if isinstance(images, list) and len(images) > 1:
        size = sum(len(image) for image in images if isinstance(image, str)) * 3 // 4
        if size > _MOST_OF_ALL:
            raise ValueError(f"have {size} bytes in all; at most {MAX_IMAGES_BYTES} are accepted in one message")
    return images


def check_system_prompt(text: str) -> None:
    """Refuse a system prompt, or an addition to one, that has too many tokens. Raises `InvalidInput` if it has."""
    if (tokens := count_tokens(text)) > MAX_SYSTEM_PROMPT_TOKENS:
        raise InvalidInput(
            "system_prompt", f"has some {tokens} tokens; at most {MAX_SYSTEM_PROMPT_TOKENS} are accepted"
        )


def images_of_result(images: Sequence[str]) -> tuple[list[str], str]:
    """Return the images of a tool's result that a model can be shown, and all of them in words."""
    shown: list[str] = []
    words: list[str] = []
    for image in images:
        of_data = _DATA_URL.match(image)
        kind, _, data = image.partition(",") if of_data or image.startswith("data:") else (image, "", "")
        named = f"{kind[5:85].partition(';')[0]}, {len(data) * 3 // 4} bytes" if data else kind[:2000]
        try:
            _is_image(image)
            if len(shown) == MAX_IMAGES:
                raise ValueError(f"is beyond the {MAX_IMAGES} that are shown of one result")
            images_that_fit([*shown, image])
        except ValueError as error:
            words.append(f"[image: {named}; not shown, as it {error}]")
        else:
            shown.append(image)
            words.append(f"[image: {named}]")
    return shown, "\n".join(words)


def _is_time_zone(name: str) -> str:
    time_zone(name)
    return name


def space_name(text: str) -> str:
    """Return the name of a space as stored: composed characters, single blanks between words. Raises
    `ValueError` if it is empty, longer than 64 characters, or holds a character that is not printed."""
    name = " ".join(not_blank(composed(no_nul(text))).split())
    if len(name) > MAX_SPACE_CHARACTERS:
        raise ValueError(f"has {len(name)} characters; at most {MAX_SPACE_CHARACTERS} are accepted")
    if not name.isprintable():
        raise ValueError("holds a character that is not printed")
    return name


def _is_id(text: str) -> str:
    if not is_id(text):
        raise ValueError(RULE)
    return composed(text)


Id = Annotated[str, Field(min_length=1, max_length=128), AfterValidator(_is_id)]
"""A caller's name for a user, a conversation or something else: printable characters of any script."""
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._:@-]{1,128}$")]
"""Name that an operator gives, such as an expert's: 1 to 128 letters, digits and `._:@-`."""
Text = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_MESSAGE_CHARACTERS),
    AfterValidator(no_nul),
    AfterValidator(not_blank),
]
SpaceName = Annotated[str, AfterValidator(space_name)]
"""Name of a user's project or folder: 1 to 64 printable characters."""
Image = Annotated[str, AfterValidator(_is_image)]
Images = Annotated[list[Image], Field(max_length=MAX_IMAGES), BeforeValidator(images_that_fit)]
"""The images of one message."""
TimeZone = Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(_is_time_zone)]
Locale = Annotated[str, StringConstraints(pattern=r"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,4}$")]


def message_tokens(content: str) -> int:
    """Estimated tokens of a message in a prompt."""
    return count_tokens(content) + MESSAGE_OVERHEAD


def image_part(image: str) -> dict[str, Any]:
    """An image as a content part of a message."""
    return {"type": "image_url", "image_url": {"url": image}}


def title_of(content: str, longest: int = 80) -> str:
    """The beginning of the first message, on one line."""
    line = " ".join(content.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def message_digest(role: Role, content: str, images: Iterable[str] = ()) -> bytes:
    """Return the digest of a message: 16 bytes over its role, its normalised text, and its images."""
    text = content
    if role == "assistant" and "<" in text:
        text = without_elements(text, *_CHANGED)
    if not text.isascii() and not unicodedata.is_normalized("NFC", text):
        text = unicodedata.normalize("NFC", text)
    digest = hashlib.blake2b(f"{role}\0{text.strip()}".encode("utf-8", "surrogatepass"), digest_size=_BYTES)
    for image in images:
        digest.update(b"\0" + hashlib.blake2b(image.encode(), digest_size=_BYTES).digest())
    return digest.digest()


def _in_calendar(moment: datetime) -> datetime:
    # A day away from the calendar's ends, every time zone has the moment.
    if not MINYEAR < moment.year < MAXYEAR:
        raise ValueError(f"must be in one of the years {MINYEAR + 1} to {MAXYEAR - 1}")
    return moment


Moment = Annotated[AwareDatetime, AfterValidator(_in_calendar)]
"""A time with its offset, which has a local day in every time zone."""
