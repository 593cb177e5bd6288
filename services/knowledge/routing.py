"""Route a message to knowledge bases: the one the caller names, or by rules, similarity and a model.

A message goes to none, to `general`, when nothing is sure. One base is the main one, whose operator's instructions
hold; others that may have the answer as well are searched beside it.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from uuid import UUID

import numpy as np
import structlog
from numpy.typing import NDArray

from services.errors import BadModelOutput, ModelFailed, Unavailable
from services.knowledge.base import BaseProfile
from services.knowledge.decision import Decision, by_closeness, by_profile
from services.knowledge.evidence import Evidence
from services.knowledge.likelihood import Closeness
from services.knowledge.message_intent import MessageIntent, manner_of, views_of
from services.knowledge.model_choice import ask_which
from services.knowledge.profile_match import Profiles, ends_of
from services.search.embedding_quality import EmbeddingQuality
from services.text.language import Language, language_of
from services.text.questions import is_small_talk
from state.conversation import RouteDecision, RouteMethod

if TYPE_CHECKING:
    from services.llm.chat_models import ChatModels
    from services.llm.embeddings import Embedder

_MOST_TENANTS = 1_000
"""Tenants whose profiles this process caches."""
_PATIENCE_S = 0.3
"""Seconds that a turn waits for an embedding of its message or of the profiles."""
_MODEL_S = 5.0
_MOST_TEXTS = 200
"""Most texts embedded for one base."""
_UNKNOWN_FLOOR = 0.35
_BELIEVED = 0.5

LoadProfiles = Callable[[UUID], Awaitable[Sequence[BaseProfile]]]
LookForPassages = Callable[[UUID, str, Sequence[float] | None], Awaitable[Sequence[Evidence]]]
Quality = Callable[[], Awaitable[Mapping[Language, EmbeddingQuality]]]

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Routing:
    """Result of routing a message."""

    decision: RouteDecision
    base: BaseProfile | None = None
    undecided: bool = False
    """Whether similarity could add evidence."""
    degraded: tuple[str, ...] = ()


@dataclass
class _Tenant:
    version: str | None
    profiles: Profiles
    embedded: dict[str, list[float]] = field(default_factory=dict)
    """Embeddings of profile texts; unchanged texts are not embedded again."""
    vectors: asyncio.Task[dict[str, NDArray[np.float64]]] | None = None


class KnowledgeRouting:
    """Chooses among a tenant's knowledge bases, or none."""

    def __init__(
        self,
        load: LoadProfiles,
        passages: LookForPassages,
        embedder: "Embedder",
        quality: Quality,
        models: "ChatModels | None" = None,
        *,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        """Take the reader of profiles, the search over all bases, and the embedding's quality.

        `models` are asked last, if they are given; an embedding has `patience_s` seconds.
        """
        self._load = load
        self._look_for_passages = passages
        self._embedder = embedder
        self._quality = quality
        self._models = models
        self._patience_s = patience_s
        self._tenants: OrderedDict[UUID, _Tenant] = OrderedDict()

    async def by_rules(
        self,
        tenant_id: UUID,
        version: str | None,
        message: str,
        *,
        requested: str | None = None,
        open_question: bool = True,
    ) -> Routing:
        """Decide by the caller's choice, else by words alone.

        Args:
            tenant_id: whose bases.
            version: of their profiles: where it is another than before, or None, they are read again; empty =
                there are none.
            message: the user's.
            requested: prefix of the base that the caller named.
            open_question: whether the message may ask for something that nothing else answers.
        """
        if version == "":
            return general("there is no knowledge base") if requested is None else _explicit(requested, None)
        try:
            profiles = (await self._of(tenant_id, version)).profiles
        except Unavailable as error:
            log.warning("routing goes without knowledge bases", reason=type(error).__name__)
            routed = (
                general("the knowledge bases could not be read") if not requested else _explicit(requested, None)
            )
            return Routing(routed.decision, None, degraded=("knowledge",))
        if requested is not None:
            return _explicit(requested, profiles.get(requested))
        manner = manner_of(ends_of(message))
        if not open_question or is_small_talk(message) or manner is MessageIntent.ELSEWHERE:
            return general("nothing is asked that a knowledge base would answer")
        if decision := by_profile(profiles, views_of(ends_of(message), manner), manner):
            return _to(decision, "keywords")
        return Routing(general("no knowledge base is close enough").decision, None, undecided=True)

    async def by_similarity(
        self,
        tenant_id: UUID,
        version: str | None,
        message: str,
        vector: Sequence[float] | None,
        *,
        before: str | None = None,
    ) -> Routing:
        """Decide also by similarity to profiles and passages, then by the small model.

        Args:
            tenant_id: whose bases.
            version: as for `by_rules`.
            message: the user's.
            vector: its embedding, where it is known; else it is embedded.
            before: the message that it goes on from, if it does: it belongs where that belongs.
        """
        degraded: list[str] = []
        try:
            tenant = await self._of(tenant_id, version)
        except Unavailable:
            return Routing(general("the knowledge bases could not be read").decision, degraded=("knowledge",))
        decision = None
        if before is not None and (decision := await self._closest(tenant_id, tenant, before, None, degraded)):
            decision = replace(decision, reason="it goes on from the message before")
        decision = decision or await self._closest(tenant_id, tenant, message, vector, degraded)
        if decision:
            return _to(decision, "similarity", degraded)
        if self._models is not None and (chosen := await self._by_model(tenant.profiles, message, degraded)):
            return _to(chosen, "model", degraded)
        return Routing(general("no knowledge base is close enough").decision, degraded=tuple(degraded))

    async def close(self) -> None:
        """Stop background work."""
        running = [tenant.vectors for tenant in self._tenants.values() if tenant.vectors]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _of(self, tenant_id: UUID, version: str | None) -> _Tenant:
        known = self._tenants.get(tenant_id)
        if known is None or version is None or known.version != version:
            embedded = known.embedded if known else {}
            known = _Tenant(version, Profiles(await self._load(tenant_id)), embedded)
            self._tenants[tenant_id] = known
            while len(self._tenants) > _MOST_TENANTS:
                self._tenants.popitem(last=False)
        self._tenants.move_to_end(tenant_id)
        return known

    async def closeness(
        self, tenant_id: UUID, version: str | None, message: str, vector: Sequence[float] | None
    ) -> tuple[Profiles, Closeness]:
        """The tenant's bases, and how close a message is to them: for training and measuring.

        Arguments as for `by_similarity`.

        Raises:
            Unavailable: the bases could not be read.
        """
        tenant = await self._of(tenant_id, version)
        return tenant.profiles, await self._closeness(tenant_id, tenant, message, vector, [])

    async def _closest(
        self, tenant_id: UUID, tenant: _Tenant, text: str, vector: Sequence[float] | None, degraded: list[str]
    ) -> Decision | None:
        manner = manner_of(ends_of(text))
        views = views_of(ends_of(text), manner)
        if certain := by_profile(tenant.profiles, views, manner):
            return certain
        near = await self._closeness(tenant_id, tenant, text, vector, degraded)
        return by_closeness(tenant.profiles, views, manner, near)

    async def _closeness(
        self, tenant_id: UUID, tenant: _Tenant, text: str, vector: Sequence[float] | None, degraded: list[str]
    ) -> Closeness:
        near, passages = await asyncio.gather(
            self._near(tenant, text, vector, degraded), self._passages(tenant_id, text, vector, degraded)
        )
        return replace(near, passages=passages)

    async def _near(
        self, tenant: _Tenant, message: str, vector: Sequence[float] | None, degraded: list[str]
    ) -> Closeness:
        try:
            async with asyncio.timeout(self._patience_s):
                table = await self._vectors(tenant)
                own = np.asarray(vector or await self._embedder.embed_query(ends_of(message)))
                quality = (await self._quality()).get(language_of([message]))
        except (Unavailable, TimeoutError):
            _note(degraded, "embedding")
            return Closeness()
        own = own / (np.linalg.norm(own) or 1.0)
        return Closeness(
            {prefix: float((vectors @ own).max()) for prefix, vectors in table.items()},
            quality.cosine_floor if quality else _UNKNOWN_FLOOR,
            believed=quality is not None and quality.quality >= _BELIEVED,
        )

    async def _passages(
        self, tenant_id: UUID, message: str, vector: Sequence[float] | None, degraded: list[str]
    ) -> Sequence[Evidence]:
        try:
            return await self._look_for_passages(tenant_id, ends_of(message), vector)
        except Unavailable as error:
            log.warning("routing goes without documents", reason=error.message)
            _note(degraded, "milvus")
            return []

    async def _vectors(self, tenant: _Tenant) -> dict[str, NDArray[np.float64]]:
        if tenant.vectors is None or (tenant.vectors.done() and tenant.vectors.exception()):
            tenant.vectors = asyncio.create_task(self._embed(tenant), name="knowledge base profiles")
        return await asyncio.shield(tenant.vectors)

    async def _embed(self, tenant: _Tenant) -> dict[str, NDArray[np.float64]]:
        texts = {
            profile.prefix: [profile.description, *profile.questions, *profile.headings][:_MOST_TEXTS]
            for profile in tenant.profiles.all
        }
        wanted = {text for each in texts.values() for text in each}
        new = sorted(wanted - tenant.embedded.keys())
        known = tenant.embedded | dict(zip(new, await self._embedder.embed_documents(new), strict=True))
        tenant.embedded = {text: known[text] for text in wanted}
        table = {}
        for prefix, each in texts.items():
            vectors = np.asarray([known[text] for text in each])
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            table[prefix] = vectors / np.where(lengths > 0, lengths, 1.0)
        return table

    async def _by_model(self, profiles: Profiles, message: str, degraded: list[str]) -> Decision | None:
        assert self._models is not None  # noqa: S101 — asked only where they are
        try:
            async with asyncio.timeout(_MODEL_S):
                chosen = await ask_which(self._models, profiles.all, message)
        except (ModelFailed, BadModelOutput, TimeoutError) as error:
            log.warning("the small model did not route", reason=type(error).__name__)
            degraded.append("routing_model")
            return None
        return Decision(chosen[0], chosen[1], "the small model's choice") if chosen else None


def _note(degraded: list[str], source: str) -> None:
    if source not in degraded:
        degraded.append(source)


def general(reason: str) -> Routing:
    """Route to no knowledge base."""
    return Routing(
        RouteDecision(kb_prefix=None, worker_name="general", confidence=1.0, method="default", reason=reason)
    )


def _explicit(prefix: str, base: BaseProfile | None) -> Routing:
    return Routing(
        RouteDecision(
            kb_prefix=prefix,
            worker_name=_worker(base, prefix),
            confidence=1.0,
            method="explicit",
            reason="the caller named the knowledge base",
        ),
        base,
    )


def _to(decision: Decision, method: RouteMethod, degraded: Sequence[str] = ()) -> Routing:
    prefix = decision.profile.prefix
    routed = RouteDecision(
        kb_prefix=prefix,
        worker_name=_worker(decision.profile, prefix),
        confidence=decision.confidence,
        method=method,
        reason=decision.reason,
    )
    if decision.also:
        routed["also"] = [profile.prefix for profile in decision.also]
    return Routing(routed, decision.profile, degraded=tuple(degraded))


def _worker(base: BaseProfile | None, prefix: str) -> str:
    return base.handler if base and base.handler else prefix
