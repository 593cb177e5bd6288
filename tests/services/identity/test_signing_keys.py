import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.errors import ConfigurationError, Unavailable
from services.identity.signing_keys import SigningKey, SigningKeys, keys_of
from tests.support.issuer import KeyServer, jwk, jwks, key_file
from tests.support.jobs import until
from tests.support.ports import free_port


@pytest.fixture
def key_server() -> Iterator[KeyServer]:
    with KeyServer() as server:
        yield server


async def _found(keys: SigningKeys, name: str) -> SigningKey:
    key = await keys.find(name)
    assert key is not None
    return key


def test_only_public_keys_for_signatures_are_taken() -> None:
    listed = [
        jwk("rsa"),
        jwk("rsa", kid="fixed", alg="PS256"),
        jwk("rsa", kid="encrypts", use="enc"),
        jwk("rsa", kid="hmac", alg="HS256"),
        jwk("short"),
        {"kty": "oct", "kid": "shared", "k": "c2VjcmV0", "alg": "HS256"},
        {"kty": "RSA", "kid": "broken", "n": "x"},
        {"kty": "EC", "kid": "curve", "crv": "secp256k1", "x": "AA", "y": "AA"},
        {"kty": "RSA"},
        {name: value for name, value in jwk("ec").items() if name != "kid"},
        "text",
    ]
    found = keys_of(json.dumps({"keys": listed}).encode())
    assert set(found) == {"rsa", "fixed"}
    assert found["fixed"].algorithms == {"PS256"}


async def test_a_file_is_read_again_when_it_has_changed_and_for_an_unknown_key(tmp_path: Path) -> None:
    path = key_file(tmp_path, "rsa")
    keys = SigningKeys(str(path), fresh_s=0)
    await keys.check()
    await _found(keys, "rsa")
    assert await keys.find("ec") is None
    path.write_text(jwks("ec"))
    await _found(keys, "ec")
    assert await keys.find("rsa") is None
    path.write_text("half a doc")
    await _found(keys, "ec")
    with pytest.raises(Unavailable):
        await keys.find("rsa")


async def test_a_file_that_cannot_be_used_stops_the_start(tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    for content, says in (
        (None, "cannot be read"),
        ("{}", "cannot be read"),
        ('{"keys": []}', "holds no public key"),
    ):
        if content is not None:
            path.write_text(content)
        with pytest.raises(ConfigurationError, match=f"ANAMNESIS_JWT_JWKS=.*{says}") as wrong:
            await SigningKeys(str(path)).check()
        assert "\n" not in wrong.value.message


async def test_an_unknown_key_is_asked_for_but_not_often(key_server: KeyServer) -> None:
    keys = SigningKeys(key_server.url, again_s=3.0)
    await _found(keys, "rsa")
    key_server.document = jwks("rsa", "stranger")
    for _ in range(20):
        assert await keys.find("stranger") is None
    assert key_server.asked == 1

    async def is_known() -> bool:
        return await keys.find("stranger") is not None

    await until(is_known)
    assert key_server.asked == 2
    await keys.close()


@pytest.mark.parametrize(("status", "document"), [(500, jwks()), (302, jwks()), (200, "<html>")])
async def test_an_address_that_fails_is_unavailable_and_never_a_pass(
    key_server: KeyServer, status: int, document: str
) -> None:
    key_server.status, key_server.document = status, document
    keys = SigningKeys(key_server.url, again_s=0.05)
    with pytest.raises(Unavailable):
        await keys.find("rsa")
    assert key_server.asked == 1  # a redirect is not followed
    key_server.status, key_server.document = 200, jwks()
    await asyncio.sleep(0.06)
    await _found(keys, "rsa")
    await keys.close()


async def test_keys_that_are_known_outlast_their_address_for_a_while(key_server: KeyServer) -> None:
    keys, forgetful = (
        SigningKeys(key_server.url, fresh_s=0.05, again_s=0.05, kept_s=kept_s) for kept_s in (60, 0.1)
    )
    await _found(keys, "rsa")
    await _found(forgetful, "rsa")
    key_server.asked, key_server.status = 0, 503
    await asyncio.sleep(0.15)
    await _found(keys, "rsa")
    assert key_server.asked == 1
    with pytest.raises(Unavailable):
        await keys.find("stranger")
    with pytest.raises(Unavailable):  # but not for ever
        await forgetful.find("rsa")
    await keys.close()
    await forgetful.close()


async def test_while_an_address_hangs_known_keys_go_on(key_server: KeyServer) -> None:
    keys = SigningKeys(key_server.url, fresh_s=0.05, again_s=0.01)
    await _found(keys, "rsa")
    key_server.delay_s = 2
    await asyncio.sleep(0.1)
    asked = key_server.asked
    reading = asyncio.create_task(_found(keys, "rsa"))

    async def is_asked() -> bool:
        return key_server.asked > asked

    await until(is_asked)
    await _found(keys, "rsa")
    assert not reading.done()
    await reading
    await keys.close()


async def test_nothing_at_the_address_is_unavailable() -> None:
    keys = SigningKeys(f"http://127.0.0.1:{free_port()}/jwks.json")
    with pytest.raises(Unavailable, match="cannot be read"):
        await keys.find("rsa")
    await keys.close()
