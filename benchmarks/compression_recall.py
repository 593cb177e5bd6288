"""What recall loses by compression: question sets as they are, and with every exchange told four times.

`python -m benchmarks.compression_recall FOLDER [FOLDER …] [--json]`

Each folder is a question set as `anamnesis eval` takes it. Of a message that was told again, any telling counts
as the message. The model is a stand-in that lets the newest telling stand for all. Before and after, the same
questions are asked by the same recall; recall@10 is in messages shown, without the category `adversarial`.
"""

import argparse
import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from benchmarks.compression_rig import compressing
from services.bootstrap import Services
from services.evaluation.dataset import Dataset, Question, load
from services.evaluation.metrics import score
from services.identity.tenants import Tenants
from services.memory.blocks import Owner
from services.memory.episodes.scope import Scope
from services.transfer.wiring import make_importer
from tests.support.compressing import compress, merging

TELLINGS = 4
_AGAIN = (("", "", ""), ("Well, ", "", "!"), ("", " again", "."), ("So, ", "", " …"))
_AGAIN_CHINESE = (("", "", ""), ("嗯，", "", "！"), ("", "", "呢。"), ("那个，", "", "……"))


def retold(dataset: Dataset) -> Dataset:
    """The same with every message told three times more, in later sessions and a little differently."""
    lines = list(dataset.lines)
    for telling in range(1, TELLINGS):
        for line in dataset.lines:
            at = datetime.fromisoformat(line["created_at"]) + timedelta(days=telling / 24)
            lines.append(
                {
                    **line,
                    "session_id": f"{line['session_id'][:100]}-{telling}",
                    "content": _told_again(line["content"], telling),
                    "created_at": at.isoformat(),
                    "external_id": f"{line['external_id']}#{telling}",
                }
            )
    return replace(dataset, lines=lines)


def _told_again(text: str, telling: int) -> str:
    ways = _AGAIN if text.isascii() else _AGAIN_CHINESE
    before, after, mark = ways[telling]
    return f"{before}{text.rstrip('.!。！')}{after}{mark}"


async def _chunks(dataset: Dataset) -> AsyncIterator[bytes]:
    for line in dataset.lines:
        yield orjson.dumps(line) + b"\n"


async def _recall(services: Services, scopes: dict[str, Scope], questions: list[Question]) -> float:
    found = []
    for question in questions:
        shown = await services.memory.archive.search(
            scopes[question.user],
            question.text,
            top_k=20,
            now=question.asked_at,
            timezone="UTC",
            said=question.said,
            speaker=question.speaker,
        )
        ids = [(source.external_id or "").partition("#")[0] for item in shown.items for source in item.sources]
        found.append(score(question.category, list(dict.fromkeys(ids)), question.evidence).recall[10])
    return sum(found) / len(found)


async def _one(services: Services, dataset: Dataset, name: str) -> dict[str, Any]:
    tenant = await Tenants(services.database).create(name)
    importer = make_importer(services.settings, services.database, services.jobs)
    await importer.run(tenant.id, _chunks(dataset))
    await services.memory.indexing.index_waiting()
    owners: dict[str, Owner] = {}
    for user in sorted({line["user_id"] for line in dataset.lines}):
        owners[user] = await services.memory.core.owner(tenant.id, user, "default")
    scopes = {user: Scope(owner.tenant_id, owner.user_id, owner.expert_id) for user, owner in owners.items()}
    questions = [each for each in dataset.questions if each.day is None and each.category != "adversarial"]
    before = await _recall(services, scopes, questions)
    reports = [(await compress(services, owner))[1] for owner in owners.values()]
    await services.memory.indexing.index_waiting()
    after = await _recall(services, scopes, questions)
    episodes = sum(report.episodes_before for report in reports), sum(report.episodes_after for report in reports)
    return {
        "set": name,
        "questions": len(questions),
        "episodes": episodes,
        "fewer": 1 - episodes[1] / episodes[0],
        "recall_before": before,
        "recall_after": after,
    }


async def run(folders: list[Path]) -> list[dict[str, Any]]:
    """Each set as it is, and retold."""
    rows = []
    async with compressing(index=True) as (services, server):
        server.default = merging()
        for folder in folders:
            dataset = load(folder)
            rows.append(await _one(services, dataset, dataset.name))
            rows.append(await _one(services, retold(dataset), f"{dataset.name}-retold"))
    return rows


def main() -> None:
    """Print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = asyncio.run(run(arguments.folders))
    if arguments.json:
        print(json.dumps(rows))
        return
    for row in rows:
        print(
            f"{row['set']}: {row['episodes'][0]} episodes before, {row['episodes'][1]} after ({row['fewer']:.1%} "
            f"fewer); recall@10 {row['recall_before']:.3f} before, {row['recall_after']:.3f} after "
            f"({row['questions']} questions)"
        )


if __name__ == "__main__":
    main()
