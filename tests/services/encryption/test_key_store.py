"""Keys of users: made once, destroyed for good, useless without the master key, refused where they do not fit."""

import base64
import os
import sqlite3
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from services.encryption.data_key import UNREADABLE, open_json, open_text
from services.encryption.key_store import MASTER_KEY_FILE, STORE_FILE, KeyStore
from services.errors import ConfigurationError

TENANT = UUID(int=1)
SECRET = "Ich habe Asthma, 自从汉堡。"


@pytest.fixture
def keys(tmp_path: Path) -> KeyStore:
    store = KeyStore(tmp_path / "keys")
    store.open(make=True)
    return store


def _reopened(folder: Path, master: Path | None = None) -> KeyStore:
    store = KeyStore(folder, master)
    store.open(make=False)
    return store


def test_a_user_has_one_key_and_others_have_others(keys: KeyStore, tmp_path: Path) -> None:
    assert keys.of_owner(TENANT, "u-1") is None
    token = keys.make_for(TENANT, "u-1").seal_text(SECRET)
    again = keys.make_for(TENANT, "u-1")
    assert open_text(token, keys.of_id) == SECRET
    assert again.id != keys.make_for(TENANT, "u-2").id != keys.make_for(uuid4(), "u-1").id
    other = _reopened(tmp_path / "keys")
    assert open_text(f"user: {token} / {token}", other.of_id) == f"user: {SECRET} / {SECRET}"
    keys.close()
    other.close()


def test_what_was_sealed_with_a_destroyed_key_is_unreadable_in_every_process(
    keys: KeyStore, tmp_path: Path
) -> None:
    other = _reopened(tmp_path / "keys")
    token = keys.make_for(TENANT, "u-1").seal_text(SECRET)
    assert open_text(token, other.of_id) == SECRET
    with sqlite3.connect(tmp_path / "keys" / STORE_FILE) as file:
        [(wrapped,)] = file.execute("SELECT wrapped FROM user_keys").fetchall()
    file.close()
    assert wrapped in (tmp_path / "keys" / STORE_FILE).read_bytes()
    assert keys.destroy(TENANT, "u-1")
    assert not keys.destroy(TENANT, "u-1")
    assert open_text(token, keys.of_id) == UNREADABLE
    other.drop_cached()
    assert open_json({"said": [token]}, other.of_id) == {"said": [UNREADABLE]}
    assert wrapped[-32:] not in (tmp_path / "keys" / STORE_FILE).read_bytes(), "bytes of the key are left"
    assert open_text(keys.make_for(TENANT, "u-1").seal_text("new"), keys.of_id) == "new"
    assert open_text(token, keys.of_id) == UNREADABLE, "of a user who comes back, the key is another one"
    keys.close()
    other.close()


def test_the_file_holds_no_name_and_no_key_that_opens_anything(keys: KeyStore, tmp_path: Path) -> None:
    key = keys.make_for(TENANT, "anna.schmidt")
    keys.close()
    files = b"".join(path.read_bytes() for path in (tmp_path / "keys").iterdir())
    assert b"anna" not in files
    assert key.id in files
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "keys").iterdir())


def test_a_new_master_key_opens_everything_and_the_old_one_nothing(keys: KeyStore, tmp_path: Path) -> None:
    tokens = [keys.make_for(TENANT, f"u-{number}").seal_text(SECRET) for number in range(3)]
    other = _reopened(tmp_path / "keys")
    old = tmp_path / "old.key"
    old.write_bytes((tmp_path / "keys" / MASTER_KEY_FILE).read_bytes())
    assert keys.rotate_master() == 3
    for store in (keys, other, _reopened(tmp_path / "keys")):
        assert [open_text(token, store.of_id) for token in tokens] == [SECRET] * 3
        store.close()
    with pytest.raises(ConfigurationError, match="is not the one of"):
        _reopened(tmp_path / "keys", old)


@pytest.mark.parametrize("broken", ["store", "master", "short", "foreign", "garbage"])
def test_keys_that_are_missing_or_do_not_fit_are_named(keys: KeyStore, tmp_path: Path, broken: str) -> None:
    keys.close()
    folder = tmp_path / "keys"
    if broken == "store":
        (folder / STORE_FILE).unlink()
    elif broken == "master":
        (folder / MASTER_KEY_FILE).unlink()
    elif broken == "short":
        (folder / MASTER_KEY_FILE).write_bytes(base64.b64encode(b"short"))
    elif broken == "foreign":
        (folder / MASTER_KEY_FILE).write_bytes(base64.b64encode(os.urandom(32)))
    else:
        (folder / STORE_FILE).write_bytes(b"nothing")
    where = {"store": STORE_FILE, "garbage": STORE_FILE}.get(broken, MASTER_KEY_FILE)
    with pytest.raises(ConfigurationError, match=where.replace(".", r"\.")):
        _reopened(folder)


def test_a_master_key_of_the_operators_is_never_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="ANAMNESIS_ENCRYPTION_KEY_FILE"):
        KeyStore(tmp_path / "keys", tmp_path / "mounted.key").open(make=True)
    (tmp_path / "mounted.key").write_bytes(base64.b64encode(os.urandom(32)))
    store = KeyStore(tmp_path / "keys", tmp_path / "mounted.key")
    store.open(make=True)
    store.close()
    assert not (tmp_path / "keys" / MASTER_KEY_FILE).exists()
