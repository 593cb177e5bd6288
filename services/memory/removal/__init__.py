"""One way for a memory to go: a target, its closure over what was made of it, then hide, delete, or attest."""
