"""Servers that exist already (DATABASE_URL, REDIS_URL): reachable, and new enough?"""

from __future__ import annotations

import psycopg
import redis
from psycopg.conninfo import conninfo_to_dict

from devos.stack.errors import StackError

POSTGRES_MIN = 15
REDIS_MIN = 6
CONNECT_TIMEOUT_S = 10


def read_postgres_url(url: str) -> dict[str, str]:
    """The parts of a libpq URL that may be shown. StackError when it is none."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error as error:
        raise StackError(f"DATABASE_URL is not a PostgreSQL URL: {str(error).strip()}") from error
    return {name: str(parts[name]) for name in ("host", "port", "dbname", "user") if parts.get(name)}


def check_postgres(url: str) -> str:
    """The version of the server at ``url``. StackError when it cannot be used; the password is never shown."""
    shown = read_postgres_url(url)
    where = " ".join(f"{key}={value}" for key, value in shown.items())
    try:
        with psycopg.connect(url, connect_timeout=CONNECT_TIMEOUT_S) as connection:
            number = connection.info.server_version
    except psycopg.Error as error:
        raise StackError(f"DATABASE_URL: no connection to PostgreSQL ({where}): {str(error).strip()}") from error
    if number // 10_000 < POSTGRES_MIN:
        raise StackError(
            f"DATABASE_URL: PostgreSQL {number // 10_000} at {where} is too old; {POSTGRES_MIN} or newer is needed."
        )
    return f"{number // 10_000}.{number % 10_000}"


def check_redis(url: str) -> tuple[str, str]:
    """Version and maxmemory-policy of the server at ``url``. StackError when it cannot be used."""
    try:
        client = redis.Redis.from_url(url, socket_timeout=CONNECT_TIMEOUT_S, socket_connect_timeout=CONNECT_TIMEOUT_S)
    except ValueError as error:
        raise StackError(f"REDIS_URL is not a Redis URL: {error}") from error
    kwargs = client.connection_pool.connection_kwargs
    where = kwargs.get("path") or f"{kwargs.get('host', 'localhost')}:{kwargs.get('port', 6379)}"
    try:
        with client:
            info = client.info()
    except redis.RedisError as error:
        raise StackError(f"REDIS_URL: no connection to Redis at {where}: {error}") from error
    version = str(info.get("redis_version", "0"))
    if int(version.split(".", maxsplit=1)[0]) < REDIS_MIN:
        raise StackError(f"REDIS_URL: Redis {version} at {where} is too old; {REDIS_MIN} or newer is needed.")
    return version, str(info.get("maxmemory_policy", "unknown"))


def policy_warning(policy: str) -> str:
    """What is wrong with a broker's maxmemory-policy; empty when nothing is."""
    if policy in ("noeviction", "unknown"):
        return ""
    return (
        f"The broker's maxmemory-policy is {policy}: it throws messages away when memory is short. "
        "Set it to noeviction."
    )
