"""Sources of an answer as OpenAI's `url_citation`."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote


def citations_of(sources: Sequence[Mapping[str, Any]], answer: str) -> list[dict[str, Any]]:
    """One citation for each document whose passages the answer's prompt showed, over the whole answer.

    A document that was ingested under an http(s) address is cited with it; others have an address of the scheme
    `anamnesis`, which names the knowledge base and the document.
    """
    cited: dict[str, dict[str, Any]] = {}
    for source in sources:
        document = str(source["document"])
        is_web = document.startswith(("http://", "https://"))
        url = document if is_web else f"anamnesis://knowledge/{quote(source['kb_prefix'])}/{quote(document)}"
        title = str(source.get("heading") or document)
        cited.setdefault(url, {"url": url, "title": title, "start_index": 0, "end_index": len(answer)})
    return list(cited.values())
