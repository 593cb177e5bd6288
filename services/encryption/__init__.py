"""Encryption of what users say, under a key for each user that can be destroyed."""
