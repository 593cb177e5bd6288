"""The command line `anamnesis`: one module a command."""
