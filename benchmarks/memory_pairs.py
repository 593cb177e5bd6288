"""How right the pairs are that maintenance proposes at night: `python -m benchmarks.memory_pairs [--misses]`.

Each record of `data/memory_pairs` is two memories of one user: they say the same, the newer contradicts the older,
or neither. Precision counts pairs proposed as duplicates or contradictions, recall those that were to be.
"""

import argparse
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

from services.maintenance.compared import Compared
from services.maintenance.findings import pairs_among
from services.memory.pairs import Side

FOLDER = Path(__file__).parent / "data" / "memory_pairs"
_KINDS = {"same": "duplicate", "contradicts": "contradiction"}
_TOLD = datetime(2026, 5, 1, tzinfo=UTC)
_EXPERT = uuid4()


def proposed(older: str, newer: str) -> str:
    """Return what is proposed for two memories: `duplicate`, `contradiction`, or `other` for nothing."""
    pairs = pairs_among([_memory(older, _TOLD), _memory(newer, _TOLD + timedelta(days=30))], None, ())
    return pairs[0].kind if pairs else "other"


def _memory(content: str, at: datetime) -> Compared:
    memory_id = uuid4()
    return Compared(
        side=Side(memory_id),
        expert_id=_EXPERT,
        space_id=None,
        content=content,
        origin="user_said",
        created_at=at,
        learned_at=at,
        is_pinned=False,
        message_ids=frozenset[UUID](),
    )


def main() -> None:
    """Print precision and recall of each kind, by language."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory_pairs", description=__doc__)
    parser.add_argument("--misses", action="store_true", help="print what was wrongly proposed or missed")
    options = parser.parse_args()
    for path in sorted(FOLDER.glob("*.jsonl")):
        counts: Counter[tuple[str, str]] = Counter()
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            wanted = _KINDS.get(record["relation"], "other")
            found = proposed(record["older"], record["newer"])
            counts[wanted, found] += 1
            if options.misses and wanted != found:
                print(f"  {wanted} -> {found}: {record['older']} | {record['newer']}")
        for kind in _KINDS.values():
            right = counts[kind, kind]
            proposals = sum(count for (_, found), count in counts.items() if found == kind)
            there = sum(count for (wanted, _), count in counts.items() if wanted == kind)
            print(f"{path.stem} {kind:13} {right} of {proposals} proposed are right, {right} of {there} found")


if __name__ == "__main__":
    main()
