"""The language model that an admin chose in the console, kept in the data folder.

It is used if neither the environment nor `.env` names a model. It is used as a whole, so that the key of one
provider never goes to the address of another.
"""

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from services.encryption.private_files import replace_file
from services.errors import ConfigurationError

_FILE = "model.json"
_ADDRESS = r"^https?://[^\s]+$"
_NO_KEY = "none"
"""Value sent in place of a missing key; otherwise the language model's key would be sent."""


def key_of_endpoint(given: str) -> str:
    """Return a key without the blanks around it. Raises `ValueError` if the key cannot be sent in a header."""
    key = given.strip()
    for position, character in enumerate(key, 1):
        if not "!" <= character <= "~":
            raise ValueError(f"holds a character that no key has, at position {position}")
    return key


class ChosenModel(BaseModel):
    """A model and its endpoint."""

    model_config = ConfigDict(extra="forbid")

    base_url: str = Field(pattern=_ADDRESS, max_length=2_000)
    api_key: str | None = Field(None, min_length=1, max_length=2_000, repr=False)
    model: str = Field(min_length=1, max_length=500)
    api: Literal["responses", "chat"] = "chat"
    small_model: str | None = Field(None, min_length=1, max_length=500, description="For background work.")
    embedding_model: str | None = Field(None, min_length=1, max_length=500, description="For search by meaning.")
    embedding_base_url: str | None = Field(
        None, pattern=_ADDRESS, max_length=2_000, description="Where it is asked; null = at the same address."
    )
    embedding_api_key: str | None = Field(
        None, min_length=1, max_length=2_000, repr=False, description="Its key at an address of its own."
    )
    embedding_dim: int | None = Field(None, ge=2, le=32768, description="Its dimensions; found when it is tried.")
    filing_grade: Literal["well", "some", "none"] | None = Field(
        None, description="How well the model for background work files; null = not known."
    )

    @field_validator("api_key", "embedding_api_key")
    @classmethod
    def _can_be_a_key(cls, value: str | None) -> str | None:
        return None if value is None else key_of_endpoint(value) or None

    def as_settings(self, *, small: bool = True, embedding: bool = True, grade: bool = True) -> dict[str, Any]:
        """Return it by the names of the settings, which go before the variables of the OpenAI SDK.

        Args:
            small: Whether its model for background work is used.
            embedding: Whether its embedding model is used.
            grade: Whether its grade is used; not if another model files.
        """
        values: dict[str, Any] = {
            "llm_model": self.model,
            "llm_api": self.api,
            "ANAMNESIS_LLM_BASE_URL": self.base_url,
            "ANAMNESIS_LLM_API_KEY": self.api_key,
        }
        if small and self.small_model:
            values["small_llm_model"] = self.small_model
        if small and grade and self.filing_grade:
            values["memory_filing_grade"] = self.filing_grade
        if embedding and self.embedding_model and self.embedding_dim:
            values |= {"embedding_model": self.embedding_model, "embedding_dim": self.embedding_dim}
            values |= self.embedding_endpoint
        return values

    @property
    def embedding_endpoint(self) -> dict[str, str | None]:
        """Return the settings of the embedding model's endpoint; a key only goes to the address it was given
        for."""
        key = (self.embedding_api_key or _NO_KEY) if self.embedding_base_url else None
        return {"embedding_base_url": self.embedding_base_url, "embedding_api_key": key}


def chosen_model(data_dir: Path) -> ChosenModel | None:
    """Return the chosen model; None if none was chosen. Raises `ConfigurationError` if the file cannot be read."""
    file = data_dir / _FILE
    try:
        return ChosenModel.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}.") from None
    except ValidationError:
        raise ConfigurationError(
            f"{file} does not name a model; remove it and choose one in the console."
        ) from None


def choose_model(data_dir: Path, model: ChosenModel | None) -> None:
    """Keep a model; None removes it. Raises `ConfigurationError` if the file cannot be written."""
    file = data_dir / _FILE
    try:
        if model is None:
            file.unlink(missing_ok=True)
            return
        data_dir.mkdir(parents=True, exist_ok=True)
        replace_file(file, json.dumps(model.model_dump(exclude_none=True)).encode())
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be written: {error.strerror}.") from None
