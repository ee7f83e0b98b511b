"""The stack under DevOS: a real PostgreSQL and a real Valkey from wheels, and the supervisor behind `devos up`.

Nothing here imports Django: the stack must come up before there is a database to configure it with.
"""
