"""Upkeep of memory by night: delete what is kept no longer, merge what says the same, let fade what is unused."""
