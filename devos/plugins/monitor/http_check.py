"""The action ``monitor.http.check``."""

from __future__ import annotations

import re
from typing import Literal

import requests
from pydantic import Field, field_validator

from devos.plugins import certificates
from devos.plugins.fields import Headers, Status, WebUrl
from devos.plugins.monitor.pattern import matches
from devos.plugins.network_errors import brief, error_code
from devos.plugins.secret_values import mask, opened, secret_texts
from tasks_app.sdk import ActionError, ActionInput, ActionOutput, Context, action, outbound

_BODY_MAX = 1_000_000


class HttpCheckInput(ActionInput):
    """What to ask and what a healthy answer looks like."""

    url: WebUrl = Field(description="Full http:// or https:// URL.")
    method: Literal["GET", "HEAD"] = Field("GET", description="Method.")
    headers: Headers = Field(
        default_factory=dict, description="Request headers. Values of secret ones are stored encrypted and never shown."
    )
    expect_status: list[Status] = Field(
        default_factory=list, max_length=50, description="Statuses that mean up; empty means any 2xx."
    )
    body_contains: str | None = Field(None, min_length=1, max_length=1_000, description="Text the page must contain.")
    body_matches: str | None = Field(
        None, min_length=1, max_length=500, description="Regular expression (Python's) that must be found in the page."
    )
    max_latency_ms: float | None = Field(
        None, gt=0, le=300_000, description="Longest time of an answer that still counts as up, milliseconds."
    )
    min_tls_days_left: float = Field(
        7, ge=0, le=3_650, description="Days the certificate must still be valid to count as up."
    )
    timeout_s: float = Field(10, gt=0, le=120, description="Longest time to wait for the whole answer, seconds.")
    follow_redirects: bool = Field(True, description="Judge the page at the end of redirects.")
    verify_tls: bool = Field(True, description="A certificate that cannot be verified means down.")
    fail_when_down: bool = Field(False, description="Fail the task with CHECK_FAILED when the result is down.")

    @field_validator("body_matches")
    @classmethod
    def _is_a_pattern(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                re.compile(value)
            except (re.error, OverflowError, RecursionError) as error:
                raise ValueError(f"is not a regular expression ({error})") from error
        return value


class Reason(ActionOutput):
    """Why a check is not up. ``code``: stable; ``makes``: what it makes of the result."""

    code: str
    message: str
    makes: Literal["degraded", "down"]


class HttpCheckOutput(ActionOutput):
    state: Literal["up", "degraded", "down"]
    reasons: list[Reason] = Field(description="Empty when up.")
    url: str = Field(description="The page that was judged, after redirects.")
    status: int | None = None
    latency_ms: float | None = Field(None, description="Time of the whole answer, milliseconds.")
    first_byte_ms: float | None = Field(None, description="Time until the headers had come, milliseconds.")
    size_bytes: int | None = None
    redirects: int = 0
    tls_days_left: float | None = Field(None, description="Days until the certificate expires; null without TLS.")
    peer_address: str | None = None


@action(
    "monitor.http.check",
    version=1,
    title="Check a web page",
    description=(
        "Asks for a page once and says up, degraded or down, with reasons: status, text, pattern, latency, "
        "certificate. A page that is down is a result, not a failure, unless fail_when_down is set."
    ),
    permission="monitor.check",
    timeout_s=180,
    modes={"sync", "async"},
    agent_tool=True,
)
def http_check(ctx: Context, input: HttpCheckInput) -> HttpCheckOutput:
    """Ask once and judge."""
    secrets = secret_texts(input.headers.values())
    try:
        output = _judge(input, _ask(ctx, input))
    except requests.RequestException as error:
        reason = Reason(code=error_code(error), message=mask(brief(error), secrets), makes="down")
        output = HttpCheckOutput(state="down", reasons=[reason], url=input.url)
    except outbound.OutboundInterrupted:
        ctx.raise_if_cancelled()
        raise
    ctx.log.info("checked", state=output.state, status=output.status, latency_ms=output.latency_ms)
    if output.state == "down" and input.fail_when_down:
        text = "; ".join(reason.message for reason in output.reasons)
        raise ActionError(
            "CHECK_FAILED", f"{input.url} is down: {text}", retryable=False, details=output.model_dump(mode="json")
        )
    return output


def _ask(ctx: Context, wanted: HttpCheckInput) -> outbound.OutboundResponse:
    return outbound.request(
        wanted.method,
        wanted.url,
        headers=opened(wanted.headers),
        timeout_s=wanted.timeout_s,
        max_bytes=_BODY_MAX,
        follow_redirects=wanted.follow_redirects,
        verify=wanted.verify_tls,
        secret_headers=frozenset(name for name, value in wanted.headers.items() if not isinstance(value, str)),
        interrupted=lambda: ctx.cancelled,
    )


def _judge(wanted: HttpCheckInput, answer: outbound.OutboundResponse) -> HttpCheckOutput:
    certificate = certificates.load(answer.peer_certificate) if answer.peer_certificate else None
    days_left = certificates.days_left(certificate) if certificate else None
    reasons = [*_status_reasons(wanted, answer), *_body_reasons(wanted, answer)]
    if wanted.max_latency_ms is not None and answer.elapsed_ms > wanted.max_latency_ms:
        text = f"the answer took {answer.elapsed_ms:g} ms, {wanted.max_latency_ms:g} ms are allowed"
        reasons.append(Reason(code="SLOW", message=text, makes="degraded"))
    if days_left is not None and days_left < wanted.min_tls_days_left:
        text = f"the certificate expires in {days_left:g} days"
        reasons.append(Reason(code="CERTIFICATE_EXPIRES", message=text, makes="degraded"))
    made = {reason.makes for reason in reasons}
    return HttpCheckOutput(
        state="down" if "down" in made else "degraded" if made else "up",
        reasons=reasons,
        url=answer.url,
        status=answer.status,
        latency_ms=answer.elapsed_ms,
        first_byte_ms=answer.first_byte_ms,
        size_bytes=len(answer.body),
        redirects=len(answer.history),
        tls_days_left=days_left,
        peer_address=answer.peer_address,
    )


def _status_reasons(wanted: HttpCheckInput, answer: outbound.OutboundResponse) -> list[Reason]:
    good = answer.status in wanted.expect_status if wanted.expect_status else 200 <= answer.status < 300
    if good:
        return []
    expected = ", ".join(map(str, wanted.expect_status)) or "2xx"
    return [Reason(code="STATUS", message=f"status {answer.status}, expected {expected}", makes="down")]


def _body_reasons(wanted: HttpCheckInput, answer: outbound.OutboundResponse) -> list[Reason]:
    if wanted.body_contains is None and wanted.body_matches is None:
        return []
    text = answer.text()
    reasons = []
    if wanted.body_contains is not None and wanted.body_contains not in text:
        message = f"the page does not contain {wanted.body_contains[:100]!r}"
        reasons.append(Reason(code="BODY_MISSES_TEXT", message=message, makes="down"))
    if wanted.body_matches is not None and not matches(wanted.body_matches, text):
        message = f"nothing in the page matches {wanted.body_matches[:100]!r}"
        reasons.append(Reason(code="BODY_MISSES_PATTERN", message=message, makes="down"))
    return reasons
