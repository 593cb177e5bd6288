"""Mem0's memories, as `get_all` and its exports list them."""

from collections.abc import Mapping
from typing import Any

from services.transfer.vendors.records import BadRecord, VendorMemory, moment, named, optional


def memory(record: Mapping[str, Any]) -> VendorMemory:
    """Read a memory.

    Raises:
        BadRecord: it is none.
    """
    created_at = moment(record.get("updated_at"), "updated_at") or moment(record.get("created_at"), "created_at")
    if created_at is None:
        raise BadRecord("has no created_at")
    text = named(record, "memory", "text", "data").strip()
    return VendorMemory(named(record, "id"), text, created_at, optional(record, "user_id"))
