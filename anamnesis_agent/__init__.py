"""Anamnesis, a self-hosted conversational agent service that remembers: its command.

The service itself is in the packages `api`, `graph`, `nodes`, `services` and `state`. A wheel keeps them in
`anamnesis_agent/_root`, because names this common could collide with those of other distributions. Only processes
of the service look there (`anamnesis_agent.__main__`); importing `anamnesis_agent` changes neither `sys.path` nor
the environment.
"""
