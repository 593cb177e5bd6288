"""`anamnesis verify-receipt`: check a receipt of forgetting."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from api.cli.shell import FAILED, WRONG_USE, as_counts, fail, quiet_settings, told
from services.errors import AnamnesisError
from services.memory.removal.receipts import ReceiptKey, is_genuine, key_id


def verify_receipt(
    file: Annotated[Path, typer.Argument(help="The receipt, as GET …/erasures gives it; - reads standard input.")],
    key: Annotated[
        str | None,
        typer.Option("--key", help="Public key of the service, base64; otherwise that of this machine's key."),
    ] = None,
) -> None:
    """Check that a receipt of forgetting was signed by the service and not changed since. Exit code 1 if not.

    Example: `anamnesis verify-receipt receipt.json`
    """
    signed = _read(file)
    try:
        if key is None:
            settings = quiet_settings()
            key = ReceiptKey(settings.data_dir, settings.receipt_key_file, make=False).public
        genuine = is_genuine(signed, key)
    except AnamnesisError as error:
        fail(told(error), WRONG_USE)
    if not genuine:
        typer.echo(f"NOT genuine: the key {key_id(key)} did not sign this receipt as it stands.")
        raise typer.Exit(FAILED)
    receipt = signed["receipt"]
    typer.echo(f"Genuine: signed by the key {key_id(key)}.")
    typer.echo(
        f"{receipt['at']}: forgotten for {receipt['user']} by {receipt['by']}: {as_counts(receipt['counts'])}."
    )


def _read(file: Path) -> Mapping[str, Any]:
    try:
        text = typer.get_text_stream("stdin").read() if str(file) == "-" else file.read_text()
        signed = json.loads(text)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no JSON"
        fail(f"{file} cannot be read: {reason}", WRONG_USE)
    if not isinstance(signed, dict):
        fail(f"{file} is no receipt", WRONG_USE)
    return signed
