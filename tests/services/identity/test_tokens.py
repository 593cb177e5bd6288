import base64
import hashlib
import hmac
import json
import time
from pathlib import Path
from typing import Any

import jwt
import pytest

from services.errors import Unauthenticated
from services.identity.authentication import Tokens
from services.identity.caller import Caller
from services.identity.signing_keys import SigningKeys
from services.identity.tenants import DEFAULT_TENANT, Tenants
from services.platform.postgres import Database
from services.platform.settings import load_settings
from tests.support.issuer import AUDIENCE, ISSUER, PRIVATE, claims, jwk, key_file, public_pem, token


def _tokens(folder: Path, *, database: Database | None = None, **changes: Any) -> Tokens:
    given = {"jwt_issuer": ISSUER, "jwt_audience": AUDIENCE, **changes}
    settings = load_settings().model_copy(update=given)
    tenants = Tenants(database or Database("postgresql://nowhere"))
    return Tokens(settings, SigningKeys(str(key_file(folder))), tenants)


def _unsigned(header: dict[str, Any], secret: bytes | None = None, **changes: Any) -> str:
    """A token that the library would not write: without a signature, or with an HMAC."""
    parts = [json.dumps(part).encode() for part in (header, claims(**changes))]
    text = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    signature = hmac.digest(secret, text, hashlib.sha256) if secret else b""
    return (text + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()


@pytest.mark.parametrize("key", ["rsa", "ec", "ed"])
async def test_a_good_token_acts_for_its_user(tmp_path: Path, key: str) -> None:
    caller = await _tokens(tmp_path).caller_of(token(key))
    assert caller == Caller(DEFAULT_TENANT, frozenset({"chat", "memory:read"}), "u-1")


async def test_scopes_come_from_the_claim_that_is_set_as_text_or_as_a_list(tmp_path: Path) -> None:
    tokens = _tokens(tmp_path, jwt_scope_claim="permissions")
    for held, scopes in (
        ("chat  openid", {"chat"}),
        (["memory:write", "chat", 7], {"chat", "memory:write"}),
        ({"chat": True}, set()),
        (None, set()),
    ):
        assert (await tokens.caller_of(token(permissions=held))).scopes == scopes


async def test_an_admin_acts_for_the_whole_tenant(tmp_path: Path) -> None:
    caller = await _tokens(tmp_path).caller_of(token(scope="admin", sub="auth0|7"))
    assert caller == Caller(DEFAULT_TENANT, frozenset({"admin"}), None)


PAST = int(time.time()) - 1
FORGED = {
    "signature of another key": token("stranger", kid="rsa"),
    "unknown key": token("stranger"),
    "no key id": token(kid=None),
    "key id that is no text": _unsigned({"alg": "RS256", "kid": ["rsa"]}),
    "none": _unsigned({"alg": "none", "kid": "rsa"}),
    "public key as a shared secret": _unsigned({"alg": "HS256", "kid": "rsa"}, public_pem("rsa")),
    "public JWK as a shared secret": _unsigned({"alg": "HS256", "kid": "rsa"}, json.dumps(jwk("rsa")).encode()),
    "an algorithm of another kind of key": _unsigned({"alg": "ES256", "kid": "rsa"}, b"x"),
    "embedded key": jwt.encode(
        claims(), PRIVATE["stranger"], "RS256", {"kid": "stranger", "jwk": jwk("stranger")}
    ),
    "cut off": token()[:-4],
    "changed": token().replace(".", ".e30", 1),
    "not ascii": "é.é.é",
    "an API key": f"ank_{'0' * 32}_{'x' * 43}",
}


@pytest.mark.parametrize("what", FORGED)
async def test_a_forged_token_is_refused_without_saying_why(tmp_path: Path, what: str) -> None:
    with pytest.raises(Unauthenticated, match=r"^The token is not valid\.$"):
        await _tokens(tmp_path).caller_of(FORGED[what])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"exp": PAST}, "has expired"),
        ({"exp": None}, "no claim exp"),
        ({"nbf": PAST + 3600}, "not valid"),
        ({"iss": "https://evil.example/"}, "another issuer"),
        ({"aud": "another-service"}, "another audience"),
        ({"sub": None}, "no claim sub"),
        ({"sub": ".."}, "sub must be"),
    ],
)
async def test_a_token_that_does_not_say_what_it_must_is_refused(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(Unauthenticated, match=says):
        await _tokens(tmp_path).caller_of(token(**changes))


async def test_the_tenants_claim_names_the_tenant_and_must_be_there(tmp_path: Path, database: Database) -> None:
    shop = await Tenants(database).create("shop")
    tokens = _tokens(tmp_path, database=database, jwt_tenant_claim="tenant")
    for named in ("shop", str(shop.id)):
        assert (await tokens.caller_of(token(tenant=named))).tenant_id == shop.id
    assert (await tokens.caller_of(token(tenant="default"))).tenant_id == DEFAULT_TENANT
    for wrong in (None, "", "nobody", 7, ["shop"], "x" * 200, "a\x00b"):
        with pytest.raises(Unauthenticated, match="names no tenant"):
            await tokens.caller_of(token(tenant=wrong))
