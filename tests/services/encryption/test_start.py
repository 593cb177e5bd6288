"""A start whose setting, database and keys do not belong together is refused."""

from pathlib import Path

import pytest

from services.encryption.key_store import STORE_FILE, KeyStore
from services.engines import Engines, make_vault
from services.errors import ConfigurationError
from services.identity.tenants import DEFAULT_TENANT
from services.platform.postgres import Database
from services.platform.settings import load_settings


async def _open(engines: Engines, keys: Path | None) -> None:
    settings = load_settings(encryption=keys is not None, encryption_keys_dir=keys)
    database = Database(engines.database_url, vault=make_vault(settings))
    try:
        await database.open()
    finally:
        await database.close()


async def test_an_encrypted_database_is_opened_with_its_own_keys_alone(engines: Engines, tmp_path: Path) -> None:
    await _open(engines, tmp_path / "keys")
    await _open(engines, tmp_path / "keys")
    with pytest.raises(ConfigurationError, match="ANAMNESIS_ENCRYPTION=on"):
        await _open(engines, None)
    with pytest.raises(ConfigurationError, match="missing"):
        await _open(engines, tmp_path / "elsewhere")
    assert not (tmp_path / "elsewhere").exists(), "lost keys are not replaced by new ones"
    other = KeyStore(tmp_path / "other")
    other.open(make=True)
    other.close()
    with pytest.raises(ConfigurationError, match="those of another database"):
        await _open(engines, tmp_path / "other")
    (tmp_path / "keys" / STORE_FILE).unlink()
    with pytest.raises(ConfigurationError, match="missing"):
        await _open(engines, tmp_path / "keys")


async def test_a_database_with_users_in_clear_is_not_half_encrypted(engines: Engines, tmp_path: Path) -> None:
    settings = load_settings(encryption=False)
    database = Database(engines.database_url, vault=make_vault(settings))
    await database.open()
    async with database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute(
            "INSERT INTO users (id, tenant_id, external_id) VALUES (gen_random_uuid(), %s, 'u-1')",
            [DEFAULT_TENANT],
        )
    await database.close()
    with pytest.raises(ConfigurationError, match="holds users that are not encrypted"):
        await _open(engines, tmp_path / "keys")
    assert not (tmp_path / "keys").exists()
    await _open(engines, None)
