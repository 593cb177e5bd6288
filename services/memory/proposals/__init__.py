"""Changes of memory that wait for the user, and pairs of memories of which one is enough."""
