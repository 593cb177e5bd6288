"""Erasures of single things: previewed first, then carried out in one transaction, with a receipt.

What a target names is found and withdrawn as for other changes of memory; here it is also deleted, together with
everything that could undo it. A preview does the same and rolls it back, so it shows exactly what would happen.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Literal
from uuid import UUID

import structlog
from uuid_utils.compat import uuid7

from services.memory.lineage.tracing import Item, Lineage, Node
from services.memory.operations import Operation, Trigger
from services.memory.removal import purge_sql as sql
from services.memory.removal.hiding import Hiding
from services.memory.removal.key_renewal import KeyRenewal
from services.memory.removal.purge import Purge, Purged
from services.memory.removal.receipts import Receipts, digest_of
from services.memory.removal.stores import Left, RemovalStores
from services.memory.removal.tables import LOCK_USER, Rows
from services.memory.removal.targets import Target, TargetPlan, TargetPlanner, ValueTarget, described
from services.platform.connections import Connection

_REBUILT = frozenset({"summary", "topic", "visit", "day"})
_NONCE_BYTES = 16

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class AffectedItem:
    """A message, or something derived from what is forgotten."""

    kind: str
    id: UUID
    text: str | None
    outcome: Literal["removed", "rebuilt", "kept"]
    """`removed`; `rebuilt`: withdrawn now and made again without the forgotten content; `kept`: something else
    supports it."""
    reason: str | None
    """Why it is kept."""


@dataclass(frozen=True)
class ForgetResult:
    """Everything that was forgotten, or would be in the case of a preview."""

    preview: bool
    items: list[AffectedItem]
    values: list[ValueTarget]
    """Values of core memory that go."""
    counts: dict[str, int]
    receipt_id: UUID | None
    """Id of the receipt; None in a preview, and if nothing was found."""
    pending: list[str]
    """Stores that did not answer; jobs try them again."""


@dataclass(frozen=True)
class _Done:
    purged: Purged
    items: list[AffectedItem]
    left: Left

    @property
    def counts(self) -> dict[str, int]:
        outcomes = [item.outcome for item in self.items if item.kind != "message"]
        return {
            "messages": len(self.purged.messages),
            "episodes": len(self.purged.episodes),
            "values": len(self.purged.values),
            "prompts": self.purged.prompts,
            "rebuilt": outcomes.count("rebuilt"),
            "kept": outcomes.count("kept"),
        }


class Erasures:
    """Forgets for good."""

    def __init__(
        self,
        stores: RemovalStores,
        lineage: Lineage,
        planner: TargetPlanner,
        hiding: Hiding,
        receipts: Receipts,
        keys: KeyRenewal,
    ) -> None:
        self._stores = stores
        self._lineage = lineage
        self._planner = planner
        self._hiding = hiding
        self.receipts = receipts
        self._keys = keys

    async def forget(
        self,
        tenant_id: UUID,
        user: str,
        target: Target,
        *,
        by: str,
        delete_messages: bool = False,
        preview: bool = False,
    ) -> ForgetResult:
        """Forget what a target names, for good.

        Args:
            by: Who asks for it, for the receipt.
            delete_messages: Whether the words are deleted from conversations too; otherwise they can still be read
                there.
            preview: Whether nothing is changed, and the result shows what would happen.

        Raises:
            InvalidInput: The target is not valid.
            NotFound: There is nothing with that id, or no such user.
            ConfigurationError: The key of receipts cannot be read.
        """
        plan = await self._planner.plan(tenant_id, user, target)
        if not plan.changes and not plan.messages:
            return ForgetResult(preview, [], [], {}, None, [])
        stopped: list[UUID] = []
        if not preview:
            self.receipts.key.load()
            # Their prompts were read before: they would store what is forgotten.
            stopped = await self._stores.stop(plan.whose, "user", "forgotten")
        before = await self._reached(plan)
        receipt_id = None if preview else uuid7()

        async def forgotten(connection: Connection) -> tuple[_Done, Left | None]:
            done = await self._act(connection, plan, before, delete_messages=delete_messages, stopped=stopped)
            if receipt_id is None:
                await connection.execute("ROLLBACK")
                return done, None
            document = _document(receipt_id, user, target, by, done, delete_messages=delete_messages)
            await self.receipts.add(connection, tenant_id, plan.user_id, document)
            told = Operation("forget", field=document["id"], results={"counts": document["counts"]})
            await self._stores.operations.append(connection, tenant_id, plan.user_id, told, Trigger("user"))
            if delete_messages:
                await self._keys.defer(connection, tenant_id, plan.user_id)
            return done, done.left

        done, _, pending = await self._stores.erase(tenant_id, forgotten)
        log.info("forgotten", user_id=str(plan.user_id), preview=preview, pending=pending, **done.counts)
        return ForgetResult(preview, done.items, done.purged.values, done.counts, receipt_id, pending)

    async def _reached(self, plan: TargetPlan) -> list[Item]:
        """Return everything that was made from what is forgotten."""
        episodes = [UUID(each) for _, planned in plan.changes for each in planned.episodes]
        nodes = [Node("message", each) for each in plan.messages] + [Node("episode", each) for each in episodes]
        items, _, _ = await self._lineage.trace(plan.tenant_id, plan.user_id, nodes, "down")
        return [item for item in items if item.kind != "core_memory"]

    async def _act(
        self,
        connection: Connection,
        plan: TargetPlan,
        before: Sequence[Item],
        *,
        delete_messages: bool,
        stopped: Sequence[UUID],
    ) -> _Done:
        """Retract and purge, in the caller's transaction."""
        rows = Rows(connection, plan.whose)
        await rows.all(LOCK_USER)
        operation_ids = []
        for owner, planned in plan.changes:
            operation_id = await self._hiding.commit(connection, owner, planned, Trigger("user"))
            operation_ids += [operation_id] if operation_id else []
        purge = Purge(connection, plan, operation_ids)
        purged = await purge.remove(delete_messages=delete_messages)
        recent = await rows.recent_turns("user", recent_s=self._stores.recent_s)
        items = await self._outcomes(rows, plan, before, delete_messages=delete_messages)
        affected = {*purged.turn_ids, *stopped}
        turns = [(turn_id, False) for turn_id, _ in recent if turn_id in affected]
        episodes = [episode_id for episode_id, _ in purged.episodes]
        left = Left(plan.user_id, turns, episodes)
        return _Done(purged, items, left)

    async def _outcomes(
        self, rows: Rows, plan: TargetPlan, before: Sequence[Item], *, delete_messages: bool
    ) -> list[AffectedItem]:
        """Return what became of everything that was reached."""
        derived = [item for item in before if item.kind != "message"]
        left: dict[Node, bool] = {}
        for kind, group in groupby(derived, lambda item: item.kind):
            for row in await rows.all(sql.ITEMS, kind=kind, ids=[item.id for item in group]):
                left[Node(row[0], row[1])] = row[3] != "retracted" and not (kind == "visit" and row[2] is None)
        outcomes = [_outcome(item, is_left=left.get(item.node, False)) for item in derived]
        said = [_of_message(item, plan, delete_messages) for item in before if item.kind == "message"]
        return [*said, *(each for each in outcomes if each is not None)]


def _of_message(item: Item, plan: TargetPlan, delete_messages: bool) -> AffectedItem:
    if not delete_messages:
        return AffectedItem(item.kind, item.id, item.text, "kept", "its words stay in its conversation")
    if plan.messages.get(item.id) is None:
        return AffectedItem(item.kind, item.id, item.text, "removed", None)
    return AffectedItem(item.kind, item.id, item.text, "kept", "what else it says stays")


def _outcome(item: Item, *, is_left: bool) -> AffectedItem | None:
    if item.state == "retracted" or (item.kind == "visit" and item.text is None):
        return None
    if is_left:
        return AffectedItem(item.kind, item.id, item.text, "kept", "something else supports it")
    return AffectedItem(item.kind, item.id, item.text, "rebuilt" if item.kind in _REBUILT else "removed", None)


def _document(
    receipt_id: UUID, user: str, target: Target, by: str, done: _Done, *, delete_messages: bool
) -> dict[str, Any]:
    """Return the receipt; it holds only digests of what was removed."""
    nonce = secrets.token_hex(_NONCE_BYTES)
    texts = [("message", str(each), text) for each, text in done.purged.messages]
    texts += [("episode", str(each), text or "") for each, text in done.purged.episodes]
    texts += [("value", f"{each.section}.{each.field}", each.text) for each in done.purged.values]
    return {
        "format": 1,
        "id": str(receipt_id),
        "user": user,
        "by": by,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "target": described(target),
        "delete_messages": delete_messages,
        "counts": done.counts,
        "rebuilt": [{"kind": item.kind, "id": str(item.id)} for item in done.items if item.outcome == "rebuilt"],
        "nonce": nonce,
        "removed": [
            {"kind": kind, "name": name, "sha256": digest_of(nonce, kind, name, text)}
            for kind, name, text in texts
        ],
    }
