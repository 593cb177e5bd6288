"""Proven deletion: what goes is shown first, removed in one transaction, and attested by a signed receipt."""
