"""Folders for what tests throw away: in memory if the machine has a place for that."""

import os
import shutil
import tempfile
from pathlib import Path

_IN_MEMORY = Path("/dev/shm")
_ENOUGH = 4 * 1024**3


def new_folder() -> "tempfile.TemporaryDirectory[str]":
    """Return a folder that is removed with its context. It is not in pytest's own folder, which another run
    would close to the account of an embedded PostgreSQL."""
    usable = os.access(_IN_MEMORY, os.W_OK) and shutil.disk_usage(_IN_MEMORY).free > _ENOUGH
    return tempfile.TemporaryDirectory(prefix="anamnesis-test-", dir=_IN_MEMORY if usable else None)
