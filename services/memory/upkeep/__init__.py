"""Nightly upkeep of memory: delete what has expired, merge memories that say the same, archive unused ones."""
