"""The user of a request to `/v1`, and whether the request is remembered."""

import contextlib
import re
from collections.abc import Mapping
from urllib.parse import unquote

import jwt

from services.errors import Forbidden, InvalidInput, Unauthenticated
from services.identity.caller import Caller
from services.platform.settings import Settings
from services.validation import RULE, composed, is_id

USER_JWT_HEADER = "X-OpenWebUI-User-Jwt"
USER_HEADERS = ("X-OpenWebUI-User-Id", "X-OpenWebUI-User-Email", "X-User-Id", "X-LiteLLM-End-User-Id")
"""Headers that may name the user; the first one that is present does."""
NO_USER = (
    "This request names no user, so nothing is remembered. Send `user` or `safety_identifier`, forward user "
    "headers with a key made with --acts-for-headers, or give the key a default user."
)
_ISSUER = "open-webui"
_ADDRESS = re.compile(r"[^@\s]{1,64}@[^@\s]{1,128}\.[^@\s]{1,64}")
"""E-mail address; people also write it in capitals."""


def end_user_of(
    caller: Caller, headers: Mapping[str, str], settings: Settings, *named: tuple[str, str | None]
) -> str | None:
    """Determine the user of a request; a request without one (None) is answered without memory.

    The first of these decides: the token's user; a signed header; a plain header, from callers that may act for
    others; a field of the body; the default user of the key, or of the service without authentication.

    Args:
        settings: Settings with the secret of signed headers.
        named: Fields of the body with their values, the most trusted first.

    Raises:
        Forbidden: A header names a user, and the caller may not act for users that headers name.
        Unauthenticated: A signed header is not valid.
        InvalidInput: The name is not valid for a user.
    """
    if (known := user_in_header(caller, headers, settings)) is not None:
        return known
    for field, given in named:
        if given is not None and given.strip():
            return _checked(field, given.strip())
    return caller.default_user or settings.openai_default_user


def user_in_header(caller: Caller, headers: Mapping[str, str], settings: Settings) -> str | None:
    """Return the user to whom a token or a header binds a request; None = neither names one.

    Raises:
        Forbidden, InvalidInput, Unauthenticated: As `end_user_of`.
    """
    header = next(((name, value) for name in USER_HEADERS if (value := header_text(headers, name))), None)
    if caller.user_id is not None:
        if header is not None and _of_header(*header) != caller.user_id:
            raise Forbidden(f"{header[0]} names another user than the token.")
        return caller.user_id
    if (token := headers.get(USER_JWT_HEADER, "").strip()) and settings.openwebui_jwt_secret:
        subject = _subject_of(token, settings.openwebui_jwt_secret.get_secret_value())
        return _checked(USER_JWT_HEADER, subject)
    if header is not None:
        if not caller.acts_for_headers:
            raise Forbidden(
                f"The header {header[0]} names a user, and this key may not act for others. Make one with "
                "anamnesis keys create --acts-for-headers, or do not forward the header."
            )
        return _of_header(*header)
    return None


def header_text(headers: Mapping[str, str], name: str) -> str:
    """Return the value of a header, empty without one; non-ASCII text is UTF-8, percent-encoded or not."""
    value = headers.get(name, "").strip()
    with contextlib.suppress(UnicodeError):
        value = value.encode("latin-1").decode()
    with contextlib.suppress(UnicodeError):
        decoded = unquote(value, errors="strict")
        return value if decoded.isascii() else decoded  # `%40` may be meant literally
    return value


def _of_header(header: str, said: str) -> str:
    name = _checked(header, said)
    return name.lower() if _ADDRESS.fullmatch(name) else name


def _checked(field: str, name: str) -> str:
    if not is_id(name):
        raise InvalidInput(field, f"{RULE} to name a user")
    return composed(name)


def _subject_of(token: str, secret: str) -> str:
    try:
        claims = jwt.decode(
            token,
            secret,
            algorithms=["HS256"],
            issuer=_ISSUER,
            options={"require": ["exp", "iss", "sub"], "verify_iat": False, "verify_aud": False},
        )
    except jwt.PyJWTError:
        raise Unauthenticated(f"The token in {USER_JWT_HEADER} is not valid.") from None
    return str(claims["sub"])
