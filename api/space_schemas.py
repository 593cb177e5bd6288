"""What requests and answers about spaces look like."""

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field

from api.schemas import StrictModel
from services.conversations.values import SpaceName

SpaceQuery = Annotated[
    SpaceName | None,
    Query(description="Name of the space in question; unset = what was said outside of any, which all share."),
]
"""Whose memory is read or changed: that of a space, or what all spaces of the user share."""


class SpaceChange(StrictModel):
    """What is to change about a space."""

    name: SpaceName = Field(description="The new name, which no other space of the user has.")


class ErasedSpaceView(BaseModel):
    """What was removed with a space."""

    user_id: str
    space: str
    removed: dict[str, dict[str, int]] = Field(description="How many of each kind, by store.")
    pending: list[str] = Field(description="Stores that did not answer; a background job goes on trying.")
