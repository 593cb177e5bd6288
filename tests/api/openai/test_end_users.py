"""For whom a request is, and who may say so."""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jwt
import pytest

from api.end_user import end_user_of
from api.openai.sessions import ids_of
from services.errors import Forbidden, InvalidInput, Unauthenticated
from services.identity.caller import Caller
from services.identity.tenants import DEFAULT_TENANT
from services.platform.settings import load_settings

SECRET = "s" * 32
KEY = Caller(DEFAULT_TENANT, frozenset({"chat"}))
GATEWAY = replace(KEY, acts_for_headers=True)
TOKEN = replace(KEY, user_id="u-token")


def _who(caller: Caller, headers: Mapping[str, str], **settings: Any) -> str | None:
    named = (("safety_identifier", settings.pop("safe", None)), ("user", settings.pop("user", None)))
    return end_user_of(caller, headers, load_settings(**settings), *named)


def _signed(secret: str = SECRET, **claims: Any) -> dict[str, str]:
    claims = {"sub": "u-signed", "iss": "open-webui", "exp": int(time.time()) + 60, **claims}
    return {"X-OpenWebUI-User-Jwt": jwt.encode(claims, secret, algorithm="HS256")}


def test_the_most_certain_name_counts() -> None:
    header = {"X-OpenWebUI-User-Id": "u-header"}
    assert _who(TOKEN, {}, user="u-body") == "u-token"
    assert _who(GATEWAY, {**_signed(), **header}, openwebui_jwt_secret=SECRET, user="u-body") == "u-signed"
    assert _who(GATEWAY, header, user="u-body") == "u-header"
    assert _who(KEY, {}, safe="u-safe", user="u-body") == "u-safe"
    assert _who(replace(KEY, default_user="u-key"), {}, user="u-body") == "u-body"
    assert _who(replace(KEY, default_user="u-key"), {}) == "u-key"
    assert _who(KEY, {}, openai_default_user="u-service") == "u-service"
    assert _who(KEY, {}) is None


def test_one_person_is_one_user_however_a_client_writes_the_name() -> None:
    addressed = "X-OpenWebUI-User-Email"
    assert _who(GATEWAY, {addressed: "Jose\u0301@Example.com"}) == "josé@example.com"
    assert _who(GATEWAY, {"X-User-Id": "Team/Anna"}) == "Team/Anna"
    assert _who(KEY, {}, user="jose\u0301") == _who(KEY, {}, user="josé") == "josé"
    assert _who(replace(TOKEN, user_id="a@b.example"), {addressed: "A@B.example"}) == "a@b.example"
    assert ids_of({"X-Session-Id": "cafe\u0301"}).session == "café"


def test_a_header_is_believed_of_nobody_who_may_not_act_for_others() -> None:
    for name in ("X-OpenWebUI-User-Id", "X-OpenWebUI-User-Email", "X-User-Id"):
        with pytest.raises(Forbidden, match="--acts-for-headers"):
            _who(KEY, {name: "u-1"})
    with pytest.raises(Forbidden):
        _who(TOKEN, {"X-OpenWebUI-User-Id": "u-1"})
    assert _who(TOKEN, {"X-OpenWebUI-User-Id": "u-token"}) == "u-token"


@pytest.mark.parametrize(
    "headers", [_signed("t" * 32), _signed(exp=1), _signed(iss="another"), {"X-OpenWebUI-User-Jwt": "x.y.z"}]
)
def test_a_signed_header_must_be_right(headers: dict[str, str]) -> None:
    with pytest.raises(Unauthenticated):
        _who(KEY, headers, openwebui_jwt_secret=SECRET)


def test_ids_are_read_from_headers_and_metadata() -> None:
    assert ids_of({}, {"session_id": "s"}).session == "s"
    assert ids_of({"X-OpenWebUI-Chat-Id": "c"}, {"session_id": "s"}).session == "c"
    assert ids_of({"X-Session-Id": "x", "X-OpenWebUI-Chat-Id": "c"}).session == "x"
    for chat in ("local:1", "temporary:1", "channel:1"):
        assert ids_of({"X-OpenWebUI-Chat-Id": chat}).passing
    assert ids_of({"X-OpenWebUI-User-Message-Id": "m"}).parent is None
    assert ids_of({"X-OpenWebUI-User-Message-Id": "m", "X-OpenWebUI-User-Message-Parent-Id": ""}).parent == ""
    assert ids_of({"X-OpenWebUI-Message-Id": "a"}).idempotency_key == "a"
    with pytest.raises(InvalidInput) as refused:
        ids_of({"X-OpenWebUI-Chat-Id": "{{CHAT_ID}}"})
    assert refused.value.field == "X-OpenWebUI-Chat-Id"
