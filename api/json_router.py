"""Makes the routers of the JSON API."""

from http import HTTPStatus

from fastapi import APIRouter

from api.problems import documented
from api.request_bodies import JsonRoute


def json_router(prefix: str, tag: str, *problems: HTTPStatus) -> APIRouter:
    """Return a router whose endpoints may answer with some problems, and all with 422 and 503."""
    every = (*problems, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE)
    return APIRouter(route_class=JsonRoute, prefix=prefix, tags=[tag], responses=documented(*every))
