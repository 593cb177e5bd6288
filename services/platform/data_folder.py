"""The data folder of the embedded engines, held by one service at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from services.errors import ConfigurationError


@contextmanager
def held(data_dir: Path) -> Iterator[None]:
    """Hold the folder; the kernel lets go of it when the process ends, however it ends.

    Raises:
        ConfigurationError: another service holds it, or it cannot be written to.
    """
    folder = data_dir.resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "service.lock").open("a+")
    except OSError as error:
        raise unusable(data_dir, error) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.seek(0)
            raise ConfigurationError(
                f"ANAMNESIS_DATA_DIR={folder} is in use by another service (process {lock.read().strip()}). "
                f"Stop that one, or give this one another folder; several processes start with --workers."
            ) from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


def unusable(data_dir: Path, error: OSError) -> ConfigurationError:
    """The error for a folder that the system does not let us use."""
    return ConfigurationError(
        f"ANAMNESIS_DATA_DIR={data_dir.resolve()} cannot be used: {error.strerror}. Make it writable and see that "
        f"there is space, or set another folder."
    )
