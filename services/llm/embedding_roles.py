"""Prefixes that tell an embedding model what is sought and what is searched; a start needs them, and no client."""

import re
from dataclasses import dataclass

_RETRIEVE = "Given a web search query, retrieve relevant passages that answer the query"


@dataclass(frozen=True)
class Roles:
    """Text put before what is embedded, by its role."""

    query: str = ""
    document: str = ""

    def identity(self, model: str) -> str:
        """Return the name by which an index knows whose embeddings it holds."""
        return f"{model} [{self.query}|{self.document}]" if self.query or self.document else model


# From the models' own descriptions; the first that matches counts.
_FAMILIES: tuple[tuple[str, Roles], ...] = (
    (r"e5.*instruct|qwen3-?embedding", Roles(f"Instruct: {_RETRIEVE}\nQuery: ")),
    (r"\be5\b|-e5-", Roles("query: ", "passage: ")),
    (
        r"bge-(?:small|base|large)-en-v1\.5|mxbai-embed",
        Roles("Represent this sentence for searching relevant passages: "),
    ),
    (r"bge-(?:small|base|large)-zh-v1\.5", Roles("为这个句子生成表示以用于检索相关文章：")),
    (r"nomic-embed", Roles("search_query: ", "search_document: ")),
    (r"embedding-?gemma", Roles("task: search result | query: ", "title: none | text: ")),
    (
        r"jina-embeddings-v3",
        Roles("Represent the query for retrieving evidence documents: ", "Represent the document for retrieval: "),
    ),
    (r"jina-embeddings-v4", Roles("Query: ", "Passage: ")),
    (r"jina-embeddings-v5", Roles("Query: ", "Document: ")),
    (r"arctic-embed.*v2", Roles("query: ")),
)  # fmt: skip


def roles_of(model: str, query: str | None = None, document: str | None = None) -> Roles:
    """Return the prefixes of a model: those given, and for the others those of its family."""
    name = model.lower().replace("_", "-")
    usual = next((roles for pattern, roles in _FAMILIES if re.search(pattern, name)), Roles())
    return Roles(usual.query if query is None else query, usual.document if document is None else document)
