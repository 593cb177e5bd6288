"""Retention: how long a tenant keeps what, its preview, and the removal of what is older."""
