"""Memory across conversations: core memory, episodes, recall, the changes that are asked for, and filing.

Whatever reads or writes PostgreSQL raises `DatabaseUnavailable` where it does not answer; a transaction has then
changed nothing, unless the connection broke in the moment of the commit. Whatever takes a user raises `NotFound`
where the tenant has no such user, or the user is erased meanwhile.
"""
