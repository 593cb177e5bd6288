"""Erasure of a user, and checks of what is stored: of words, and of a receipt of forgetting."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anamnesis_client import Anamnesis
from api.cli import shell
from api.cli.access import named
from api.cli.service import over_http
from services.engines import open_engines
from services.identity.tenants import Tenants
from services.json_levels import shallow_json
from services.memory.removal.receipts import ReceiptKey, is_genuine, key_id
from services.memory.removal.tables import scrub as scrub_tables
from services.platform.settings import Settings

if TYPE_CHECKING:
    from services.memory.removal.canary import Search

_SHOWN = ("conversations", "messages", "turns", "jobs")
"""Kinds of data that the summary names; `--json` counts all kinds."""


@over_http
def erase(
    service: Anamnesis,
    user: shell.OfUser,
    space: shell.InSpace = None,
    scrub: Annotated[
        bool,
        typer.Option(
            "--scrub",
            help="Also rewrite tables and index, so that no file keeps an erased byte; on the service's machine.",
        ),
    ] = False,
    yes: shell.Yes = False,
    as_json: shell.AsJson = False,
) -> None:
    """Permanently remove a user, or one space of a user, with everything stored, and report what was removed.

    Example: `anamnesis erase u-1 --yes --scrub`
    """
    what = f"the user {user}" if space is None else f"the space {space} of the user {user}"
    shell.confirm(f"Permanently erase {what}?", yes=yes)
    path = ("users", user) if space is None else ("users", user, "spaces", space)
    if scrub:
        erased = shell.run(lambda settings: _erase_and_scrub(settings, service, path))
    else:
        erased = service.request("DELETE", *path)
    if as_json:
        shell.print_json({**erased, "scrubbed": scrub})
    else:
        _show_erased(erased, scrubbed=scrub)


async def _erase_and_scrub(settings: Settings, service: Anamnesis, path: Sequence[str]) -> dict[str, Any]:
    async with open_engines(settings) as engines:
        if engines.owner_url is None:
            shell.fail(
                "--scrub needs ANAMNESIS_MIGRATION_DATABASE_URL, the address of the tables' owner", shell.WRONG_USE
            )
        async with shell.open_services_on(settings, engines) as services:
            erased: dict[str, Any] = await asyncio.to_thread(service.request, "DELETE", *path)
            await scrub_tables(engines.owner_url)
            await shell.wait_for_milvus(services)
            with shell.one_line_errors("The data is erased, but the index was not rewritten: anamnesis reindex"):
                await services.erasure.scrub_index()
            return erased


def _show_erased(erased: dict[str, Any], *, scrubbed: bool) -> None:
    """Say what was removed."""
    removed = {kind: count for kinds in erased["removed"].values() for kind, count in kinds.items()}
    shown = {kind: removed.get(kind, 0) for kind in _SHOWN}
    space = erased.get("space")
    what = erased["user_id"] if space is None else f"the space {space} of {erased['user_id']}"
    typer.echo(f"Erased {what}: {shell.as_counts({'memories': removed.get('episodes', 0), **shown})}.")
    for store in erased["pending"]:
        typer.echo(f"{store} did not answer; a background job removes what it holds.")
    if scrubbed:
        typer.echo("Tables and index were rewritten without the erased data.")
    else:
        typer.echo("The bytes stay in the stores' files until they are overwritten; --scrub does that at once.")


def audit(
    user: shell.OfUser,
    canary: Annotated[str, typer.Option("--canary", help="The word to search for.")],
    tenant: shell.OfTenant = "default",
    files: Annotated[
        list[Path] | None, typer.Option("--files", help="A log or folder to search as well; can be repeated.")
    ] = None,
    as_json: shell.AsJson = False,
) -> None:
    """Name every place that holds a word: tables, the job queue, the index, Redis, and files of the data folder.

    Exit code 1 if it is anywhere but in conversations and the files that store these. Encrypted words are opened.
    Bytes of deleted rows stay in the stores' files until they are overwritten; see erase --scrub. A user who was
    erased may be named.

    Example: `anamnesis audit u-1 --canary asthma --files /var/log/anamnesis.log`
    """

    async def work(settings: Settings) -> "Search":
        from services.memory.removal.canary import CanarySearch  # noqa: PLC0415 — help needs none of it

        async with shell.open_all_services(settings) as services:
            found = await named(Tenants(services.database), tenant)
            search = CanarySearch(services.database, services.memory.index, services.redis)
            return await search.search(found.id, user, canary, [settings.data_dir, *(files or [])])

    search = shell.run(work)
    if as_json:
        shell.print_json(search)
    else:
        for each in search.findings:
            where = f" ({', '.join(each.columns)})" if each.columns else ""
            typer.echo(f"{each.store}: {each.place}{where}, {shell.as_counts({'rows': each.rows})}")
        found = shell.as_counts({"places": len(search.findings)})
        typer.echo(f"Found in {found}. Searched: {', '.join(search.searched)}.")
        for store in search.unreachable:
            typer.echo(f"{store} does not answer and was not searched.", err=True)
    if search.beyond_conversations or search.unreachable:
        raise typer.Exit(shell.FAILED)


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
    if key is None:
        settings = shell.quiet_settings()
        key = ReceiptKey(settings.data_dir, settings.receipt_key_file, make=False).public
    if not is_genuine(signed, key):
        typer.echo(f"NOT genuine: the key {key_id(key)} did not sign this receipt as it stands.")
        raise typer.Exit(shell.FAILED)
    receipt = signed["receipt"]
    typer.echo(f"Genuine: signed by the key {key_id(key)}.")
    counts = shell.as_counts(receipt["counts"])
    typer.echo(f"{receipt['at']}: forgotten for {receipt['user']} by {receipt['by']}: {counts}.")


def _read(file: Path) -> Mapping[str, Any]:
    try:
        text = typer.get_text_stream("stdin").read() if str(file) == "-" else file.read_text()
        signed = shallow_json(text)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no JSON"
        shell.fail(f"{file} cannot be read: {reason}", shell.WRONG_USE)
    if not isinstance(signed, dict):
        shell.fail(f"{file} is no receipt", shell.WRONG_USE)
    return signed
