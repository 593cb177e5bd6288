"""`POST /v1/embeddings`: vectors of the service's own encoder, as OpenAI's clients ask for them."""

import base64
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from api.access import Chatter
from api.openai.chat import ERRORS
from api.openai.models import EMBEDDING, ModelNotFound
from api.request_bodies import JsonRoute
from services.errors import InvalidInput, Unavailable
from services.llm.builtin_embeddings import MOST_CHARACTERS
from services.llm.embeddings import Embedder, Vector
from services.llm.token_estimates import count_tokens
from services.search.queries import of_length_1

router = APIRouter(prefix="/v1/embeddings", tags=["openai"], responses=ERRORS, route_class=JsonRoute)

_MOST_TEXTS = 2048
_MOST_CHARACTERS = 100_000
"""Maximum number of characters of all texts in a request; they take a second or two of one core."""
_Text = Annotated[str, StringConstraints(min_length=1)]


class EmbeddingRequest(BaseModel):
    """Texts to embed."""

    model_config = ConfigDict(extra="forbid")

    model: str = Field(description=f"`{EMBEDDING}`, or an alias of it.")
    input: _Text | Annotated[list[_Text], Field(min_length=1, max_length=_MOST_TEXTS)]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(None, description="Those of the encoder: its vectors cannot be shortened.")
    user: str | None = Field(None, description="Changes nothing.")


@router.post("", response_class=JSONResponse)
async def embeddings(body: EmbeddingRequest, caller: Chatter) -> Response:
    """Embed texts; nothing is stored. A long text is embedded in pieces, and its vector is the mean of theirs."""
    services = caller.services
    if services.settings.openai_model_aliases.get(body.model, body.model) != EMBEDDING:
        raise ModelNotFound(f"{body.model[:80]!r} makes no embeddings; the model {EMBEDDING!r} does.")
    embedder = services.embedder
    if reason := embedder.by_words_alone:
        raise Unavailable(f"There are no embeddings here: {reason}.")
    if body.dimensions not in {None, embedder.dimension}:
        raise InvalidInput("dimensions", f"must be {embedder.dimension}, or left out")
    texts = [body.input] if isinstance(body.input, str) else body.input
    if (size := sum(map(len, texts))) > _MOST_CHARACTERS:
        raise InvalidInput("input", f"has {size} characters; at most {_MOST_CHARACTERS} are taken in a request")
    vectors = await _vectors(embedder, texts)
    tokens = sum(map(count_tokens, texts))
    data = [
        {"object": "embedding", "index": at, "embedding": _shown(vector, body.encoding_format)}
        for at, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return JSONResponse({"object": "list", "data": data, "model": body.model, "usage": usage})


async def _vectors(embedder: Embedder, texts: Sequence[str]) -> Sequence[Vector]:
    pieces = [
        (at, text[begin : begin + MOST_CHARACTERS])
        for at, text in enumerate(texts)
        for begin in range(0, len(text), MOST_CHARACTERS)
    ]
    found = await embedder.embed_documents([piece for _, piece in pieces])
    sums = np.zeros((len(texts), embedder.dimension), dtype=np.float32)
    for (at, piece), vector in zip(pieces, found, strict=True):
        sums[at] += np.asarray(vector, dtype=np.float32) * len(piece)
    return list(of_length_1(sums))


def _shown(vector: Vector, encoding: str) -> Any:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode() if encoding == "base64" else vector.tolist()
