"""The numbers of compression, as the operator has set them."""

from dataclasses import dataclass

from services.platform.settings import Settings

_MOST_AT_ONCE = 12


@dataclass(frozen=True)
class CompressionRules:
    """When episodes are merged, and when they are retired."""

    on: bool = True
    similarity: float = 0.85
    """Cosine from which on two episodes are alike."""
    cluster: int = 4
    """Similar episodes from which they are merged."""
    retire_importance: float = 0.3
    """Episodes of less are retired,"""
    retire_days: int = 90
    """Days after which such episodes are retired if they were never recalled."""
    keep_days: int = 30
    """For so long a run can be undone."""

    @property
    def most_at_once(self) -> int:
        """Episodes that are merged into one text; larger groups are parted."""
        return max(_MOST_AT_ONCE, 2 * self.cluster)


def compression_rules(settings: Settings) -> CompressionRules:
    """The numbers that the operator has set."""
    return CompressionRules(
        on=settings.memory_compression and settings.memory_episodes,
        similarity=settings.memory_compression_similarity,
        cluster=settings.memory_compression_cluster,
        retire_importance=settings.memory_compression_retire_importance,
        retire_days=settings.memory_compression_retire_days,
        keep_days=settings.memory_compression_keep_days,
    )
