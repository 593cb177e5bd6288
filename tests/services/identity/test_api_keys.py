import hashlib

import psycopg
import pytest

from services.engines import Engines
from services.errors import Unauthenticated
from services.identity.api_keys import ApiKeys
from services.identity.tenants import DEFAULT_TENANT
from services.platform.postgres import Database


async def test_only_a_hash_of_the_secret_is_stored(database: Database, engines: Engines) -> None:
    _, key = await ApiKeys(database).create(DEFAULT_TENANT, "shop", ["chat"])
    secret = key.split("_", 2)[2]
    with psycopg.connect(str(engines.owner_url)) as owner:
        (stored,) = owner.execute("SELECT k::text FROM api_keys k").fetchone() or ("",)
    assert hashlib.sha256(secret.encode()).hexdigest() in stored
    assert secret not in stored


async def test_a_wrong_key_is_refused_in_the_same_words_whatever_is_wrong(database: Database) -> None:
    keys = ApiKeys(database)
    record, key = await keys.create(DEFAULT_TENANT, "shop", ["chat"])
    _, other = await keys.create(DEFAULT_TENANT, "till", ["chat"])
    head, secret = key[:36], key[37:]
    wrong = [
        f"{head}_{other[37:]}",  # the right id with another key's secret
        f"{head}_{secret[:-1]}{'A' if secret[-1] != 'A' else 'B'}",
        f"ank_{'0' * 32}_{secret}",  # no such id
        f"{head}_",
        f"{head}_{secret}\n",
        key.upper(),
        str(record.id),
        "",
        "' OR 1=1 --",
    ]
    messages = set()
    for credential in wrong:
        with pytest.raises(Unauthenticated) as refused:
            await keys.caller_of(credential)
        messages.add(refused.value.message)
    assert len(messages) == 1
    assert (await keys.caller_of(key)).tenant_id == DEFAULT_TENANT


async def test_a_revoked_key_is_refused_at_once_by_every_process(database: Database, engines: Engines) -> None:
    keys = ApiKeys(database)
    record, key = await keys.create(DEFAULT_TENANT, "shop", ["chat"])
    elsewhere = Database(engines.database_url)
    await elsewhere.open()
    try:
        await ApiKeys(elsewhere).caller_of(key)
        first = await keys.revoke(DEFAULT_TENANT, record.id)
        with pytest.raises(Unauthenticated):
            await ApiKeys(elsewhere).caller_of(key)
        with pytest.raises(Unauthenticated):
            await keys.caller_of(key)
    finally:
        await elsewhere.close()
    assert first.revoked_at is not None
    assert (await keys.revoke(DEFAULT_TENANT, record.id)).revoked_at == first.revoked_at
