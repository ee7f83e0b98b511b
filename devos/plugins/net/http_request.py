"""The action ``net.http.request``."""

from __future__ import annotations

import base64
import json
from typing import Literal

import requests
from pydantic import Field, JsonValue, model_validator

from devos.plugins.fields import Headers, Parameters, Status, WebUrl
from devos.plugins.network_errors import brief
from devos.plugins.secret_values import mask, masked_headers, opened, secret_texts
from tasks_app.sdk import ActionError, ActionInput, ActionOutput, Context, RetryPolicy, action, outbound

_TEXTUAL = ("text/", "application/json", "application/xml", "application/javascript", "application/x-www-form")
_NOT_SAFE_TWICE = frozenset({"POST", "PATCH"})
_SHOWN_IN_ERROR = 500


class HttpRequestInput(ActionInput):
    """The request to send and what counts as success."""

    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] = Field("GET", description="Method.")
    url: WebUrl = Field(description="Full http:// or https:// URL. Put secrets into headers or params.")
    headers: Headers = Field(
        default_factory=dict,
        description=(
            "Request headers. Values of headers like Authorization, Cookie or X-Api-Key are stored encrypted and never "
            "shown."
        ),
    )
    params: Parameters = Field(
        default_factory=dict, description="Query parameters to add. Those named like secrets are never shown."
    )
    json_body: JsonValue = Field(None, alias="json", description="JSON to send as the body.")
    body: str | None = Field(None, max_length=900_000, description="Text to send as the body, instead of json.")
    expect_status: list[Status] = Field(
        default_factory=list, max_length=50, description="Statuses that are success; empty means any below 400."
    )
    timeout_s: float = Field(30, gt=0, le=300, description="Longest time for everything, redirects included, seconds.")
    max_response_bytes: int = Field(
        1_000_000, ge=0, le=2_000_000, description="Most bytes of the response that are read; more is cut."
    )
    follow_redirects: bool = Field(False, description="Follow redirects. Each hop is checked like the first URL.")
    max_redirects: int = Field(5, ge=1, le=20, description="Most redirects that are followed.")
    verify_tls: bool = Field(True, description="Refuse certificates that cannot be verified.")
    idempotency_header: bool = Field(
        True, description="Send an Idempotency-Key that is the same for every attempt with POST and PATCH."
    )

    @model_validator(mode="after")
    def _one_body(self) -> HttpRequestInput:
        if self.json_body is not None and self.body is not None:
            raise ValueError("give json or body, not both")
        if self.method in {"GET", "HEAD"} and (self.json_body is not None or self.body is not None):
            raise ValueError(f"a {self.method} request has no body; use POST, or params")
        return self


class Redirect(ActionOutput):
    url: str
    status: int
    location: str


class HttpRequestOutput(ActionOutput):
    """What came back. Of ``body_json``, ``body_text`` and ``body_base64`` the first that fits is filled."""

    status: int
    reason: str
    url: str = Field(description="Where the answer came from, after redirects.")
    headers: dict[str, str] = Field(description="Response headers, names in lower case; secret values masked.")
    body_json: JsonValue = Field(None, description="The body, when it is JSON.")
    body_text: str | None = Field(None, description="The body, when it is text but no JSON.")
    body_base64: str | None = Field(None, description="The body, when it is neither.")
    size_bytes: int = Field(description="Bytes of the body that were read, after decompression.")
    truncated: bool = Field(description="The response was larger than max_response_bytes.")
    elapsed_ms: float = Field(description="Time of everything, milliseconds.")
    first_byte_ms: float = Field(description="Time until the headers of the last hop had come, milliseconds.")
    redirects: list[Redirect]
    peer_address: str | None = Field(description="The address that answered.")


@action(
    "net.http.request",
    version=1,
    title="HTTP request",
    description=(
        "Sends one HTTP request and returns the answer. An unexpected status fails the task: 429 and 5xx are tried "
        "again, others are not. Addresses inside the network are refused unless the settings allow them."
    ),
    permission="net.http",
    timeout_s=330,
    retry=RetryPolicy(max_attempts=4, strategy="exponential", delay_ms=1_000, max_delay_ms=60_000, jitter=True),
    modes={"sync", "async"},
    agent_tool=True,
)
def http_request(ctx: Context, input: HttpRequestInput) -> HttpRequestOutput:
    """Send the request; raise when its status is not an expected one."""
    secrets = secret_texts([*input.headers.values(), *input.params.values()])
    try:
        answer = _send(ctx, input)
    except requests.exceptions.SSLError as error:
        raise ActionError("TLS_ERROR", mask(brief(error), secrets), retryable=False) from error
    except outbound.OutboundInterrupted:
        ctx.raise_if_cancelled()
        raise
    _check_status(input, answer, secrets)
    return _output(answer, secrets)


def _send(ctx: Context, wanted: HttpRequestInput) -> outbound.OutboundResponse:
    headers = opened(wanted.headers)
    given = {name.lower() for name in headers}
    if wanted.idempotency_header and wanted.method in _NOT_SAFE_TWICE and "idempotency-key" not in given:
        headers["Idempotency-Key"] = ctx.idempotency_key
    return outbound.request(
        wanted.method,
        wanted.url,
        headers=headers,
        params=opened(wanted.params) or None,
        json=wanted.json_body,
        data=wanted.body.encode() if wanted.body is not None else None,
        timeout_s=wanted.timeout_s,
        max_bytes=wanted.max_response_bytes,
        follow_redirects=wanted.follow_redirects,
        max_redirects=wanted.max_redirects,
        verify=wanted.verify_tls,
        secret_headers=frozenset(name for name, value in wanted.headers.items() if not isinstance(value, str)),
        interrupted=lambda: ctx.cancelled,
    )


def _check_status(wanted: HttpRequestInput, answer: outbound.OutboundResponse, secrets: list[str]) -> None:
    status = answer.status
    if status in wanted.expect_status or (not wanted.expect_status and status < 400):
        return
    code, retryable = "UNEXPECTED_STATUS", False
    if status == 429:
        code, retryable = "RATE_LIMIT", True
    elif status >= 500:
        code, retryable = "TEMPORARY_UNAVAILABLE", True
    after = answer.headers.get("retry-after", "")
    raise ActionError(
        code,
        mask(f"{wanted.method} {answer.url} answered {status} {answer.reason}".rstrip(), secrets),
        retryable=retryable,
        retry_after_s=float(after) if after.isascii() and after.isdigit() and len(after) < 7 else None,
        details={
            "status": status,
            "expected": wanted.expect_status or "below 400",
            "body": mask(answer.text()[:_SHOWN_IN_ERROR], secrets),
        },
    )


def _output(answer: outbound.OutboundResponse, secrets: list[str]) -> HttpRequestOutput:
    parsed, text, encoded = _body(answer, secrets)
    return HttpRequestOutput(
        status=answer.status,
        reason=answer.reason,
        url=mask(answer.url, secrets),
        headers=masked_headers(answer.headers, secrets),
        body_json=parsed,
        body_text=text,
        body_base64=encoded,
        size_bytes=len(answer.body),
        truncated=answer.truncated,
        elapsed_ms=answer.elapsed_ms,
        first_byte_ms=answer.first_byte_ms,
        redirects=[
            Redirect(url=mask(hop.url, secrets), status=hop.status, location=mask(hop.location, secrets))
            for hop in answer.history
        ],
        peer_address=answer.peer_address,
    )


def _body(answer: outbound.OutboundResponse, secrets: list[str]) -> tuple[JsonValue, str | None, str | None]:
    kind = answer.media_type
    if not answer.body:
        return None, "", None
    if not (kind.startswith(_TEXTUAL) or kind.endswith(("+json", "+xml")) or kind == ""):
        return None, None, base64.b64encode(answer.body).decode()
    text = mask(answer.text(), secrets)
    if kind == "application/json" or kind.endswith("+json"):
        try:
            return json.loads(text), None, None
        except (ValueError, RecursionError):
            pass  # says JSON and is none (or was cut): the text is still worth having
    return None, text, None
