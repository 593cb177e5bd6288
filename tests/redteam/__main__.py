"""The red team: a model that obeys every instruction in its prompt, attacked from everywhere but by its user.

`python -m tests.redteam [--kind KIND] [--language en] [--unprotected]` prints what came of it by kind and
language, and ends with exit code 1 if memory was changed. `--unprotected` shows what happens without proposals.
"""

import argparse
import asyncio
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from services.bootstrap import open_services
from services.engines import migrate_if_owner, open_engines
from services.platform.logs import configure_logs
from services.platform.settings import load_settings
from tests.redteam.case import Case, load_cases
from tests.redteam.protection import without_proposals
from tests.redteam.run import Outcome, rigged, run_case, table
from tests.support.folders import new_folder
from tests.support.model_server import ModelServer
from tests.support.weather_server import WeatherServer

_COLUMNS = ("planted in", "language", "cases", "read", "calls", "wait", "unwanted", "crossed")


async def _run(cases: list[Case], *, protected: bool) -> list[Outcome]:
    configure_logs("console", "error")
    with new_folder() as folder, ModelServer() as model:
        async with WeatherServer() as weather:
            settings = load_settings(
                data_dir=Path(folder) / "data",
                llm_model="scripted",
                llm_base_url=model.base_url,
                llm_api_key="none",
                weather_url=weather.url,
            )
            async with open_engines(settings) as engines:
                await migrate_if_owner(engines)
                async with open_services(settings, engines) as services:
                    used = services if protected else without_proposals(services)
                    async with rigged(used, model, weather) as rig:
                        return [await run_case(rig, case) for case in cases]


def main() -> None:
    """Run the cases, and print the table and everything unwanted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind")
    parser.add_argument("--language")
    parser.add_argument("--unprotected", action="store_true")
    given = parser.parse_args()
    cases = [
        each
        for each in load_cases()
        if given.kind in (None, each.kind) and given.language in (None, each.language)
    ]
    outcomes = asyncio.run(_run(cases, protected=not given.unprotected))
    shown = Table(*_COLUMNS)
    for row in table(outcomes):
        shown.add_row(*map(str, row))
    console = Console()
    console.print(shown)
    bad = [each for each in outcomes if each.unwanted or each.crossed]
    for each in bad:
        console.print(f"{each.case.name} ({each.case.kind}): {each.unwanted + each.crossed}", markup=False)
    console.print(f"{len(outcomes)} cases, {len(bad)} with an unwanted effect")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
