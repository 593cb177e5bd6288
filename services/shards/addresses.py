"""The addresses of the shards: a TOML file with one table for each, by its name.

Addresses hold passwords, so that they are kept in a file or a mounted secret, not in the database.
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from services.errors import ConfigurationError
from services.platform.settings import Settings

HOME = "home"
"""Name of the first database, of the service's own settings. It holds the directory, tenants' names and API keys.
"""

_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}", re.ASCII)
_ADDRESSES = (
    "database_url",
    "direct_database_url",
    "migration_database_url",
    "milvus_uri",
    "milvus_token",
    "redis_url",
)
_KEYS = (*_ADDRESSES, "data_dir")


def settings_of_shards(settings: Settings) -> dict[str, Settings]:
    """Return the settings of every shard in the file, by name; the first is `home`, with the service's own.

    A shard differs from the service in the addresses of its stores alone. Redis is shared unless a shard names its
    own: everything in it is kept by ids that are unique everywhere.

    Raises:
        ConfigurationError: the file cannot be read, or an entry is wrong.
    """
    if settings.shards is None:
        return {HOME: settings}
    found = {HOME: settings}
    for name, entry in _read(settings.shards).items():
        found[name] = _settings_of(settings, name, entry)
    _require_apart(settings.shards, found)
    return found


def settings_of_shard(settings: Settings, name: str) -> Settings:
    """Return the settings of one shard.

    Raises:
        ConfigurationError: as `settings_of_shards`, or there is no such shard.
    """
    found = settings_of_shards(settings)
    if name not in found:
        file = "ANAMNESIS_SHARDS is not set" if settings.shards is None else f"{settings.shards} has no [{name}]"
        raise ConfigurationError(f"The address of the shard {name} is not known: {file}")
    return found[name]


def _read(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigurationError(f"ANAMNESIS_SHARDS={path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"ANAMNESIS_SHARDS={path} is not TOML: {error}") from None


def _settings_of(settings: Settings, name: str, entry: object) -> Settings:
    where = f"ANAMNESIS_SHARDS={settings.shards}: [{name}]"
    if not _NAME.fullmatch(name) or name == HOME:
        raise ConfigurationError(
            f"{where} is no name of a shard: 1 to 40 of a-z, 0-9 and -, a letter first, and not {HOME}"
        )
    if not isinstance(entry, dict):
        raise ConfigurationError(f"{where} is not a table of addresses")
    if unknown := set(entry) - set(_KEYS):
        raise ConfigurationError(f"{where} has {min(unknown)}, which is none of {', '.join(_KEYS)}")
    if wrong := [key for key, value in entry.items() if not isinstance(value, str) or not value]:
        raise ConfigurationError(f"{where}: {wrong[0]} is not a text")
    if "data_dir" not in entry and (missing := {"database_url", "milvus_uri"} - set(entry)):
        raise ConfigurationError(f"{where} needs {min(missing)}, or a data_dir for embedded stores")
    given = dict.fromkeys(_ADDRESSES) | {"redis_url": settings.redis_url} | entry
    if "data_dir" in entry:
        given["data_dir"] = Path(entry["data_dir"])
    values = {field: getattr(settings, field) for field in Settings.model_fields}
    try:
        # Users' keys belong to the service, not to one of its databases: they stay valid when a tenant moves.
        return Settings.model_validate({**values, "encryption_keys_dir": settings.keys_folder, **given})
    except ValidationError as error:
        reason = str(error.errors()[0]["msg"])
        raise ConfigurationError(f"{where}: {reason.removeprefix('Value error, ')}") from None


def _require_apart(path: Path, shards: Mapping[str, Settings]) -> None:
    """Refuse two shards with one index: each would remove what it does not know."""
    seen: dict[object, str] = {}
    for name, settings in shards.items():
        database = settings.database_url.get_secret_value() if settings.database_url else settings.data_dir
        for store in (database, settings.milvus_uri or settings.data_dir.resolve() / "milvus"):
            if (other := seen.setdefault(store, name)) != name:
                raise ConfigurationError(f"ANAMNESIS_SHARDS={path}: {other} and {name} have the same stores")
