"""`anamnesis shard`: keep tenants in several databases, and move them between these."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.shell import AsJson, Yes, as_counts, confirm, print_json, print_table, run
from api.cli.tenants import named
from services.engines import open_database
from services.errors import ConfigurationError, InvalidInput
from services.identity.tenants import Tenant, Tenants
from services.platform.settings import Settings
from services.shards.addresses import HOME, settings_of_shard, settings_of_shards
from services.shards.directory import Directory, Move

if TYPE_CHECKING:
    from services.shards.moving import Moves

app = typer.Typer(
    no_args_is_help=True, help="Keep tenants in several databases (ANAMNESIS_SHARDS).", rich_markup_mode="markdown"
)

_WAIT_S = 120.0


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="Name of its table in the file of ANAMNESIS_SHARDS.")],
) -> None:
    """Add an empty database as a shard, and migrate it if the file names its owner's address.

    Example: `anamnesis shard add north`
    """

    async def work(settings: Settings) -> None:
        from services.shards.registering import add_shard  # noqa: PLC0415 — help needs none of it

        if name == HOME:
            raise InvalidInput("name", "home is the first database")
        of_shard = settings_of_shard(settings, name)
        async with open_database(settings) as database:
            await add_shard(Directory(database), name, of_shard)

    run(work)
    typer.echo(f"Added the shard {name}. Move a tenant there: anamnesis shard move TENANT {name}")


@app.command(name="list")
def list_(as_json: AsJson = False) -> None:
    """List the shards and how many tenants each holds.

    Example: `anamnesis shard list`
    """

    async def work(settings: Settings) -> list[dict[str, Any]]:
        known = _known(settings)
        async with open_database(settings) as database:
            directory = Directory(database)
            found: list[dict[str, Any]] = [{"name": HOME, "tenants": await directory.tenants_at_home()}]
            found += [{"name": shard.name, "tenants": shard.tenants} for shard in await directory.shards()]
        return [{**shard, "address": "known" if shard["name"] in known else "missing"} for shard in found]

    found = run(work)
    if as_json:
        print_json(found)
    else:
        print_table({"name": "name", "tenants": "tenants", "address": "address"}, found)


@app.command()
def status(
    tenant: Annotated[str | None, typer.Argument(metavar="TENANT", help="Name or id of a tenant.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show moves that are under way, and finished ones whose old copies are still kept.

    Example: `anamnesis shard status web-shop`
    """

    async def work(settings: Settings) -> list[Move]:
        async with open_database(settings) as database:
            owner = await named(Tenants(database), tenant) if tenant else None
            return await Directory(database).moves(owner.id if owner else None)

    found = run(work)
    if as_json:
        print_json([asdict(move) for move in found])
        return
    columns = {"tenant": "tenant", "source": "from", "target": "to", "step": "step", "changed_at": "since"}
    print_table(columns, [{name: getattr(move, name) for name in columns} for move in found])


@app.command()
def move(
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="Name or id of the tenant.")],
    to: Annotated[
        str | None, typer.Argument(metavar="TO", help="Shard to move it to; home is the first database.")
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Take back a move that is not finished.")] = False,
    purge: Annotated[
        bool, typer.Option("--purge", help="Remove the copy that a finished move left where the tenant was.")
    ] = False,
    wait: Annotated[float, typer.Option(min=0, help="Seconds to wait for running turns and jobs.")] = _WAIT_S,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Move a tenant with all of its data, compared before it is used there. The service may be running.

    New requests of the tenant get 503 with Retry-After meanwhile; running turns end first. A command that was
    ended at any moment is run again and goes on.

    Example: `anamnesis shard move web-shop north`
    """
    if [to is not None, undo, purge].count(True) != 1:
        raise typer.BadParameter("name a shard to move to, or --undo, or --purge", param_hint="TO")
    if purge:
        confirm(f"Permanently remove the copy of {tenant} where it was before its move?", yes=yes)

    async def work(settings: Settings) -> Move:
        async with _moves(settings, tenant) as (moves, owner):
            if undo:
                return await moves.undo(owner.id)
            if purge:
                return await moves.purge(owner.id)
            return await moves.move(owner.id, str(to), wait_s=wait, on_step=_tell)

    done = run(work, after_failure=" See: anamnesis shard status")
    if as_json:
        print_json(asdict(done))
    elif undo:
        typer.echo(f"{done.tenant} is served by {done.source}, as before.")
    elif purge:
        typer.echo(f"Removed the copy of {done.tenant} from {done.source}.")
    else:
        rows = {name: each["rows"] for name, each in (done.report or {}).get("copied", {}).items()}
        typer.echo(f"{done.tenant} is served by {done.target}: {as_counts(rows)}, compared row by row.")
        typer.echo(f"{done.source} keeps its copy until: anamnesis shard move {done.tenant} --purge")


def _tell(line: str) -> None:
    typer.echo(line, err=True)


def _known(settings: Settings) -> dict[str, Settings]:
    if settings.shards is None:
        raise ConfigurationError("Set ANAMNESIS_SHARDS to the file with the addresses of the shards.")
    return settings_of_shards(settings)


@asynccontextmanager
async def _moves(settings: Settings, tenant: str) -> "AsyncIterator[tuple[Moves, Tenant]]":
    from services.llm.embeddings import Embedder  # noqa: PLC0415 — help needs none of it
    from services.shards.moving import Moves  # noqa: PLC0415

    _known(settings)
    embedder = Embedder.of(settings)
    try:
        async with open_database(settings) as database:
            owner = await named(Tenants(database), tenant)
            yield (
                Moves(Directory(database), settings, model=embedder.model, dimension=embedder.dimension),
                owner,
            )
    finally:
        await embedder.close()
