"""Measurements of the service against a floor that is measured in the same run."""
