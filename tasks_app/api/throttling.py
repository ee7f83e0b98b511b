"""How many requests a caller may make: counted in fixed windows in Redis, one small counter for each caller."""

from __future__ import annotations

import time
from typing import Any

import structlog
from django.conf import settings
from django.core.cache import cache
from redis.exceptions import RedisError
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from tasks_app.api.errors import Throttled
from tasks_app.domain.principal import Principal

log = structlog.get_logger(__name__)
_PERIODS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def parse_rate(rate: str) -> tuple[int, int]:
    """``"6000/min" -> (6000, 60)``: requests, seconds."""
    count, _, period = rate.partition("/")
    return int(count), _PERIODS_S[period.strip()[:1].lower()]


class PrincipalThrottle(BaseThrottle):
    """The knob ``api_rate`` for each key or user. Without Redis nobody is held up: work matters more than counting."""

    def allow_request(self, request: Request, view: Any) -> bool:
        if not isinstance(request.auth, Principal):
            return True
        most, period_s = parse_rate(settings.DEVOS.api_rate)
        now = time.time()
        actor = request.auth.actor
        key = f"throttle:{actor.type}:{actor.id}:{int(now // period_s)}"
        if self._count(key, period_s) > most:
            wait_s = max(1, round(period_s - now % period_s))
            raise Throttled(f"More than {settings.DEVOS.api_rate} requests. Try again in {wait_s} s.", wait_s)
        return True

    @staticmethod
    def _count(key: str, period_s: int) -> int:
        try:
            if cache.add(key, 1, timeout=period_s + 5):
                return 1
            return cache.incr(key)
        except ValueError:  # it expired between the two commands
            return 1
        except RedisError as error:
            log.warning("api.throttle_unavailable", error=str(error))
            return 0
