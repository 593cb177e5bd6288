"""Events of users, told to their clients and to webhooks."""
