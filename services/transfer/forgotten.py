"""What users have forgotten for good, of the lines of an import: known by digests, and kept away."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import UUID

from services.conversations.values import message_digest
from services.encryption.marks import WordsDigest
from services.memory.items import values_of
from services.memory.removal.purge import word_digest
from services.transfer.lines import CoreMemoryLine, EpisodeLine, MessageLine, SessionLine
from services.transfer.owners import BatchStatements

_FORGOTTEN: LiteralString = """
SELECT g.place, f.deleted
FROM unnest(%(user_ids)s::uuid[], %(digests)s::bytea[]) WITH ORDINALITY AS g (user_id, digest, place)
JOIN forgotten_words f ON f.user_id = g.user_id AND f.digest = g.digest AND f.tenant_id = %(tenant_id)s
"""

Known = MessageLine | EpisodeLine | CoreMemoryLine | SessionLine


def digest_of_line(line: MessageLine) -> bytes:
    """Return the digest by which a message is known."""
    return message_digest(line.role, line.content, [part.image_url.url for part in line.parts])


@dataclass(frozen=True)
class Forgotten:
    """Digests that users have forgotten, each with whether its words were deleted."""

    digests: dict[tuple[UUID, bytes], bool]

    def deleted(self, user_id: UUID, digest: bytes) -> bool | None:
        """Whether words were deleted, or only taken out of memory; None where they were not forgotten."""
        return self.digests.get((user_id, digest))

    def without_forgotten(self, user_id: UUID, content: dict[str, Any]) -> dict[str, Any]:
        """Return a section of core memory without the values that were forgotten."""

        def kept(prefix: str, value: Any) -> Any:
            if isinstance(value, dict):
                inner = {name: kept(f"{prefix}.{name}" if prefix else name, each) for name, each in value.items()}
                return {name: each for name, each in inner.items() if each is not None}
            if isinstance(value, list):
                return [item for item in value if not gone(prefix, item)]
            return None if gone(prefix, value) else value

        def gone(name: str, item: Any) -> bool:
            return self.deleted(user_id, word_digest("value", name, str(item))) is not None

        return kept("", content) if self.digests else content


class ForgottenWords(BatchStatements):
    """Reads what users of one tenant have forgotten."""

    async def among(self, lines: Sequence[tuple[UUID, Known]]) -> Forgotten:
        """Return what of these lines, each with its user, was forgotten."""
        named = list(dict.fromkeys((user_id, each) for user_id, line in lines for each in _digests(line)))
        if not named:
            return Forgotten({})
        values = {
            "user_ids": [user_id for user_id, _ in named],
            "digests": [WordsDigest(digest) for _, digest in named],
        }
        rows = await self._rows(_FORGOTTEN, values)
        return Forgotten({named[place - 1]: deleted for place, deleted in rows})


def _digests(line: Known) -> Iterable[bytes]:
    match line:
        case MessageLine():
            yield digest_of_line(line)
        case EpisodeLine():
            yield word_digest("episode", line.content)
        case SessionLine():
            yield word_digest("title", line.title)
        case CoreMemoryLine():
            for name, text in values_of(line.content):
                yield word_digest("value", name, text)
