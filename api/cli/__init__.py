"""The command line `anamnesis`: one module per command."""
