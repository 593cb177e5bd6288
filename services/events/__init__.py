"""What happens to users, told to their clients and to webhooks."""
