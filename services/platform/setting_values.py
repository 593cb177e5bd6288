"""Types of the values of settings: how text is read, which values are accepted, and the encoding of `.env`."""

import codecs
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, SecretStr
from pydantic_settings import NoDecode

from services.errors import ConfigurationError
from services.platform.chosen_model import key_of_endpoint
from services.platform.redis_address import RedisAddress
from services.time_reference.local_days import time_zone
from services.validation import RULE, composed, is_id
from state.budget import RequestBudget, parse_budget

_SHORTEST_JWT_SECRET = 32
QUIET_HOURS = r"always|never|(?:[01]\d|2[0-3]):[0-5]\d-(?:[01]\d|2[0-3]):[0-5]\d"
"""From a time of the user's clock to another one, `always`, or `never`."""
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]{0,30}://[^/\s,]*")


def _split(value: Any) -> Any:
    if isinstance(value, str):
        return tuple(name.strip() for name in value.split(",") if name.strip())
    return value


def _origins(value: tuple[str, ...]) -> tuple[str, ...]:
    for origin in value:
        if not _ORIGIN.fullmatch(origin):
            raise ValueError(f"{origin!r} is not of the form https://host or https://host:port")
    return value


def _aliases(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    pairs = [pair.partition("=") for pair in value.split(",") if pair.strip()]
    if wrong := [name for name, _, expert in pairs if not name.strip() or not expert.strip()]:
        raise ValueError(f"{wrong[0]!r} is not of the form name=expert")
    return {name.strip(): expert.strip() for name, _, expert in pairs}


def _budget(value: Any) -> Any:
    return parse_budget(value) if isinstance(value, str) else value


def _key(value: SecretStr) -> SecretStr:
    return SecretStr(key_of_endpoint(value.get_secret_value()))


def _user(value: str) -> str:
    if not is_id(value):
        raise ValueError(RULE)
    return composed(value)


def _long_enough(value: SecretStr) -> SecretStr:
    if len(value.get_secret_value()) < _SHORTEST_JWT_SECRET:
        raise ValueError(f"is shorter than {_SHORTEST_JWT_SECRET} characters")
    return value


def _postgres(value: SecretStr) -> SecretStr:
    if not value.get_secret_value().startswith(("postgresql://", "postgres://")):
        raise ValueError("not a postgresql:// address")
    return value


def _redis(value: SecretStr) -> SecretStr:
    RedisAddress.parse(value.get_secret_value())
    return value


def _http(value: str) -> str:
    if not value.startswith(("http://", "https://")):
        raise ValueError("not an http:// or https:// address")
    return value


def _quiet(value: str) -> str:
    if not re.fullmatch(QUIET_HOURS, value):
        raise ValueError("is not always, never, or two times such as 22:00-07:00")
    return value


def _zone(value: str) -> str:
    time_zone(value)
    return value


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
Origins = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split), AfterValidator(_origins)]
Aliases = Annotated[dict[str, str], NoDecode, BeforeValidator(_aliases)]
Budget = Annotated[RequestBudget, NoDecode, BeforeValidator(_budget)]
EndpointKey = Annotated[SecretStr, AfterValidator(_key)]
SigningSecret = Annotated[SecretStr, AfterValidator(_long_enough)]
UserName = Annotated[str, AfterValidator(_user)]
FilingGrade = Literal["well", "some", "none"]
"""How well a model files: several changes in one answer; facts alone, in small questions; not at all."""
TimeZone = Annotated[str, AfterValidator(_zone)]
QuietHours = Annotated[str, AfterValidator(_quiet)]
PostgresUrl = Annotated[SecretStr, AfterValidator(_postgres)]
RedisUrl = Annotated[SecretStr, AfterValidator(_redis)]
HttpUrl = Annotated[str, AfterValidator(_http)]


_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16", codecs.BOM_UTF8: "utf-8-sig"}


def encoding_of(file: Path) -> str:
    """Return how the file is encoded: by its mark, else UTF-8, else GB18030. Raises `ConfigurationError` if it
    is none of these."""
    try:
        content = file.read_bytes()
    except OSError:
        return "utf-8"
    for mark, encoding in _MARKS.items():
        if content.startswith(mark):
            return encoding
    for encoding in ("utf-8", "gb18030"):
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\x00" not in text:
            return encoding
    raise ConfigurationError(f"{file} is not text in UTF-8, UTF-16 with its mark, or GB18030; save it as UTF-8.")
