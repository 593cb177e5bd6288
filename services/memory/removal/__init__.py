"""The way a memory goes: a target, its closure over what was derived from it, then hide, delete, attest."""
