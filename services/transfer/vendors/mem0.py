"""Mem0's memories, as `get_all` and its exports list them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from services.transfer.vendors.records import VendorMemory, moment, named, optional


def memory(record: Mapping[str, Any], exported_at: datetime) -> VendorMemory:
    """Read a memory; one without a time is as old as its export.

    Raises:
        BadRecord: it is none.
    """
    created_at = moment(record.get("updated_at"), "updated_at") or moment(record.get("created_at"), "created_at")
    created_at = created_at or exported_at
    text = named(record, "memory", "text", "data").strip()
    return VendorMemory(named(record, "id"), text, created_at, optional(record, "user_id"))
