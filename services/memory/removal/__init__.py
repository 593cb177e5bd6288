"""The one way for a memory to go: a target, its closure over all that was derived from it, then hide, delete, attest."""
