"""Anamnesis, a self-hosted conversational agent service that remembers: its command, and what its clients import.

The service itself is in the packages `api`, `graph`, `nodes`, `services` and `state`. A wheel keeps them in
`anamnesis/_root`, where names this common cannot collide with those of other distributions. Only processes of the
service look there (`anamnesis.__main__`); importing `anamnesis` changes neither `sys.path` nor the environment.
"""
