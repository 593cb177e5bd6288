"""Makes the routers of the JSON API."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Response
from fastapi.requests import HTTPConnection

from api.access import caller_of
from api.problems import documented
from api.request_bodies import JsonRoute
from services.bootstrap import Services
from services.conversations.values import Id
from services.errors import CallerError

NO_CONTENT: dict[str, Any] = {"status_code": HTTPStatus.NO_CONTENT, "response_class": Response}
"""Arguments of a route whose answer is empty; the default response would name a content type."""


def json_router(prefix: str, tag: str, *problems: HTTPStatus) -> APIRouter:
    """Return a router whose endpoints may answer with some problems, and all with 422 and 503.

    Below a user, every endpoint is for callers alone who may act for that user.
    """
    every = (*problems, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE)
    return APIRouter(
        route_class=JsonRoute,
        prefix=prefix,
        tags=[tag],
        responses=documented(*every),
        dependencies=[Depends(_acts_for_user)] if "{user_id}" in prefix else [],
    )


async def _acts_for_user(connection: HTTPConnection, user_id: Annotated[Id, Path()]) -> None:
    caller = await caller_of(connection)
    try:
        caller.act_for(user_id)
    except CallerError:  # counted, so that guessing the names of users is limited as well
        services: Services = connection.state.services
        await services.rate_limits.count_request(caller.tenant_id)
        raise
