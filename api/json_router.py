"""Makes the routers of the JSON API."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from api.problems import documented
from api.request_bodies import JsonRoute
from services.conversations.values import Id

PathId = Annotated[Id, Path()]
"""The name of a user, of an expert or of something else, in a path."""

NO_CONTENT: dict[str, Any] = {"status_code": HTTPStatus.NO_CONTENT, "response_class": Response}
"""Arguments of a route whose answer is empty; the default response would name a content type."""


def json_router(prefix: str, tag: str, *problems: HTTPStatus) -> APIRouter:
    """Return a router whose endpoints may answer with some problems, and all with 422 and 503."""
    every = (*problems, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE)
    return APIRouter(
        route_class=JsonRoute,
        prefix=prefix,
        tags=[tag],
        responses=documented(*every),
    )
