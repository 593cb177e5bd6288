"""Tenants."""

from uuid import UUID

DEFAULT_TENANT = UUID("00000000-0000-7000-8000-000000000001")
"""The tenant of everybody while there is no authentication; the first migration creates it."""
