"""`anamnesis encryption`."""

from pathlib import Path

from services.encryption.data_key import open_text
from services.encryption.key_store import MASTER_KEY_FILE, KeyStore
from services.engines import Engines
from services.identity.tenants import DEFAULT_TENANT
from tests.support.command import run_command


def test_the_master_key_is_replaced_and_everything_can_be_read(engines: Engines, tmp_path: Path) -> None:
    clear = {"ANAMNESIS_DATABASE_URL": engines.database_url, "ANAMNESIS_ENCRYPTION": "off"}
    assert run_command("encryption", "status", variables=clear).stdout == "Encryption is off.\n"
    refused = run_command("encryption", "rotate", variables=clear)
    assert refused.returncode == 1
    assert "ANAMNESIS_ENCRYPTION=on" in refused.stderr
    folder = tmp_path / "keys"
    on = {**clear, "ANAMNESIS_ENCRYPTION": "on", "ANAMNESIS_ENCRYPTION_KEYS_DIR": str(folder)}
    assert f"keys of 0 users in {folder}" in run_command("encryption", "status", variables=on).stdout
    keys = KeyStore(folder)
    keys.open(make=False)
    token = keys.make_for(DEFAULT_TENANT, "u-1").seal_text("asthma")
    before = (folder / MASTER_KEY_FILE).read_bytes()
    assert run_command("encryption", "rotate", variables=on).stdout == "A new master key wraps 1 keys.\n"
    assert (folder / MASTER_KEY_FILE).read_bytes() != before
    keys.drop_cached()
    assert open_text(token, keys.of_id) == "asthma"
    keys.close()
