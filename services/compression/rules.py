"""The configured thresholds of compression."""

from dataclasses import dataclass

from services.platform.settings import Settings

_MOST_AT_ONCE = 12


@dataclass(frozen=True)
class CompressionRules:
    """When episodes are merged."""

    on: bool = True
    similarity: float = 0.85
    """Minimum cosine of similar episodes."""
    cluster: int = 4
    """Minimum number of similar episodes to merge."""
    keep_days: int = 30
    """Days for which a run can be undone."""

    @property
    def most_at_once(self) -> int:
        """Return the maximum number of episodes merged into one text; larger groups are split."""
        return max(_MOST_AT_ONCE, 2 * self.cluster)


def compression_rules(settings: Settings) -> CompressionRules:
    """Return the configured thresholds."""
    return CompressionRules(
        on=settings.memory_compression and settings.memory_episodes,
        similarity=settings.memory_compression_similarity,
        cluster=settings.memory_compression_cluster,
        keep_days=settings.memory_compression_keep_days,
    )
