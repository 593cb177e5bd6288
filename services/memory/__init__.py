"""Memory across conversations: core memory, episodes, recall, requested changes, and filing.

Whatever reads or writes PostgreSQL raises `DatabaseUnavailable` if it does not answer; a transaction has then
changed nothing, unless the connection broke during the commit. Whatever takes a user raises `NotFound` if the
tenant has no such user, or the user is erased meanwhile.
"""
