"""Nightly upkeep of memory: deletes what has expired, merges memories that say the same, archives unused ones."""
