"""Bring about one fault after another while clients talk, and check what must hold.

`python -m tests.chaos.faults [ROW …]` prints a line for each fault: messages lost or doubled, how soon the service
answered again without a restart, how long the slowest request waited, and the errors that were told. Exit code 1
when a promise was broken. `--list` names the rows.
"""

import argparse
import asyncio
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from services.platform.embedded_postgres import OWNER_ROLE, SERVICE_ROLE, EmbeddedPostgres
from services.platform.migrate import migrate
from tests.chaos.faults.rig import Findings, new_folder
from tests.chaos.faults.rows import ROWS, Row, rig_for


async def prepare(folder: Path) -> Path:
    """A data folder as the service leaves it that was started once and told nothing."""
    server = EmbeddedPostgres(folder / "data")
    await server.start()
    await asyncio.to_thread(migrate, server.url(OWNER_ROLE), SERVICE_ROLE)
    await server.stop()
    return folder / "data"


async def play(row: Row, template: Path) -> Findings:
    """Bring the fault about while clients talk, then check."""
    async with rig_for(row, template) as rig:
        async with rig.clients():
            await row.bring(rig)
            await rig.until_usable()
        await rig.until_settled()
        rig.check()
        slowest = rig.findings.slowest_s
        rig.findings.expect(f"somebody waited {slowest:.0f} s", slowest <= row.most_wait_s)
        return rig.findings


async def run(names: list[str]) -> dict[str, Findings]:
    """Play rows one after the other; no name = all."""
    found: dict[str, Findings] = {}
    with new_folder() as name:
        template = await prepare(Path(name))
        for each in names or ROWS:
            begun = time.monotonic()
            found[each] = await play(ROWS[each], template)
            verdict = "; ".join(found[each].broken) or "kept"
            sys.stderr.write(f"{each} ({time.monotonic() - begun:.0f} s): {verdict}\n")
    return found


def show(found: dict[str, Findings]) -> None:
    """Print the table."""
    table = Table(title="Faults")
    for heading in ("fault", "messages", "broken", "usable after, s", "slowest, s", "errors and lines"):
        table.add_column(heading, overflow="fold")
    for name, findings in found.items():
        table.add_row(
            ROWS[name].fault,
            str(findings.messages),
            str(len(findings.broken)),
            f"{findings.usable_s:.1f}",
            f"{findings.slowest_s:.1f}",
            "; ".join([*findings.errors, *findings.notes]),
        )
    Console(width=150).print(table)


def main() -> None:
    """Read the options, play, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.faults", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help="which to play; without any, all")
    parser.add_argument("--list", action="store_true", help="name the rows and end")
    options = parser.parse_args()
    if unknown := [name for name in options.rows if name not in ROWS]:
        parser.error(f"no such row: {', '.join(unknown)}; there are {', '.join(ROWS)}")
    if options.list:
        sys.stdout.write("".join(f"{name:<18}{row.fault}\n" for name, row in ROWS.items()))
        return
    found = asyncio.run(run(options.rows))
    show(found)
    sys.exit(any(findings.broken for findings in found.values()))


if __name__ == "__main__":
    main()
