"""A receipt says what was forgotten without its words, and shows whether it is genuine."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from api.cli.main import app
from services.bootstrap import Services
from services.errors import ConfigurationError
from services.memory.removal.receipts import ReceiptKey
from tests.support.retracting import SECRET, WHOLE
from tests.support.turns import exchange

pytestmark = [pytest.mark.indexed, pytest.mark.untraced]

USER = "/api/v1/users/u-1"


async def _receipt(services: Services, client: httpx.AsyncClient) -> dict[str, Any]:
    turn = await exchange(services.turns, WHOLE, "Noted.")
    body = {"message_id": str(turn.user_message_id), "delete_messages": True}
    done = (await client.post(f"{USER}/erasures", json=body)).json()
    (receipt,) = (await client.get(f"{USER}/erasures")).json()["items"]
    assert receipt["id"] == done["receipt_id"]
    found: dict[str, Any] = receipt
    return found


async def test_a_receipt_holds_digests_and_no_word_of_what_is_gone(
    services: Services, client: httpx.AsyncClient
) -> None:
    signed = await _receipt(services, client)
    receipt = signed["receipt"]
    assert SECRET not in json.dumps(signed)
    assert (receipt["user"], receipt["by"], receipt["delete_messages"]) == ("u-1", "operator", True)
    assert receipt["target"]["kind"] == "message"
    assert receipt["counts"]["messages"] == 2
    of_message = next(each for each in receipt["removed"] if each["name"] == receipt["target"]["message_id"])
    told = "\0".join((receipt["nonce"], "message", of_message["name"], WHOLE)).encode()
    assert of_message["sha256"] == hashlib.sha256(told).hexdigest()


@pytest.mark.traced
async def test_the_command_checks_a_file(services: Services, client: httpx.AsyncClient, tmp_path: Path) -> None:
    signed = await _receipt(services, client)
    file = tmp_path / "receipt.json"
    file.write_text(json.dumps(signed))
    run = CliRunner()
    good = run.invoke(app, ["verify-receipt", str(file)])
    assert (good.exit_code, "Genuine" in good.output, "u-1 by operator" in good.output) == (0, True, True)
    assert run.invoke(app, ["verify-receipt", str(file), "--key", signed["public_key"]]).exit_code == 0
    stranger = base64.b64encode(bytes(32)).decode()
    assert run.invoke(app, ["verify-receipt", str(file), "--key", stranger]).exit_code == 1
    file.write_text(json.dumps(signed).replace('"u-1"', '"u-2"'))
    forged = run.invoke(app, ["verify-receipt", str(file)])
    assert (forged.exit_code, "NOT genuine" in forged.output) == (1, True)
    for wrong in ("{", "[]", "{}"):
        file.write_text(wrong)
        assert run.invoke(app, ["verify-receipt", str(file)]).exit_code == 2, wrong
    assert run.invoke(app, ["verify-receipt", str(tmp_path / "none.json")]).exit_code == 2


@pytest.mark.parametrize("content", [None, "", "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n"])
def test_a_key_that_cannot_be_read_is_named(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "key.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigurationError, match=r"key\.pem"):
        ReceiptKey(tmp_path, file).load()
