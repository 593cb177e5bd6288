"""The documentation as a site, served by the service itself."""
