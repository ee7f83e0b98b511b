"""net.http.request."""

import base64
import json

import pytest
import requests

from devos.plugins.net import http_request
from tasks_app.domain.errors import ActionError, InvalidInput
from tasks_app.runtime.context import Cancelled
from tasks_app.runtime.slots import Signal
from tasks_app.testing import RecordingReporter, run_action

JSON = {"Content-Type": "application/json"}


def run(url, reporter=None, **value):
    return run_action(http_request, {"url": url, **value}, reporter=reporter)


def test_get_json(serve):
    site = serve({"/": (200, {**JSON, "X-A": "b"}, '{"a": [1, "ü"]}')})
    output = run(site.url("/?x=1"), params={"q": "a b"}, headers={"Accept": "application/json"})
    assert (output.status, output.body_json, output.body_text) == (200, {"a": [1, "ü"]}, None)
    assert output.headers["x-a"] == "b"
    assert site.seen[0].path == "/?x=1&q=a+b"
    assert site.seen[0].headers["accept"] == "application/json"
    assert output.peer_address == "127.0.0.1"


def test_post_json_and_text(serve):
    site = serve({"/": (201, {}, "")})
    output = run(site.url(), method="POST", json={"a": 1})
    assert output.status == 201
    assert json.loads(site.seen[0].body) == {"a": 1}
    first_key = site.seen[0].headers["idempotency-key"]
    assert first_key.startswith("job_")
    run(site.url(), method="PUT", body="plain ü", headers={"Content-Type": "text/plain"})
    assert site.seen[1].body == "plain ü".encode()
    assert "idempotency-key" not in site.seen[1].headers
    run(site.url(), method="POST", body="", headers={"Idempotency-Key": "mine"})
    assert site.seen[2].headers["idempotency-key"] == "mine"


@pytest.mark.parametrize(
    ("headers", "body", "expected"),
    [
        ({"Content-Type": "text/plain; charset=iso-8859-1"}, "é".encode("latin-1"), {"body_text": "é"}),
        ({"Content-Type": "text/plain; charset=nonsense"}, b"x", {"body_text": "x"}),
        ({"Content-Type": "application/json"}, b"{broken", {"body_text": "{broken"}),
        ({"Content-Type": "application/problem+json"}, b"[1]", {"body_json": [1]}),
        ({"Content-Type": "image/png"}, b"\x89PNG", {"body_base64": base64.b64encode(b"\x89PNG").decode()}),
        ({"Content-Type": "application/json"}, b"[" * 100_000, {"body_text": "[" * 100_000}),
        ({}, b"", {"body_text": ""}),
    ],
)
def test_bodies(serve, headers, body, expected):
    output = run(serve({"/": (200, headers, body)}).url())
    filled = {name: getattr(output, name) for name in ("body_json", "body_text", "body_base64")}
    assert {name: value for name, value in filled.items() if value is not None} == expected


def test_statuses(serve):
    site = serve({"/404": (404, {}, "nope"), "/503": (503, {"Retry-After": "7"}, ""), "/429": (429, {}, "")})
    expectations = [("/404", "UNEXPECTED_STATUS", False, None), ("/503", "TEMPORARY_UNAVAILABLE", True, 7)]
    for path, code, retryable, after in [*expectations, ("/429", "RATE_LIMIT", True, None)]:
        with pytest.raises(ActionError) as failed:
            run(site.url(path))
        assert (failed.value.code, failed.value.retryable, failed.value.retry_after_s) == (code, retryable, after)
    assert failed.value.details["status"] == 429
    assert run(site.url("/404"), expect_status=[404]).body_text == "nope"
    with pytest.raises(ActionError):
        run(serve({"/": (200, {}, "")}).url(), expect_status=[201, 202])


def test_secrets_are_sent_but_never_shown(serve):
    secret = "s3cr3t-42"
    site = serve(
        {
            "/": lambda h: (200, {"Set-Cookie": f"session={secret}", "X-Echo": secret}, f"you said {secret}"),
            "/fail": (500, {}, f"bad token {secret}"),
            "/json": (200, JSON, json.dumps({"echo": secret})),
        }
    )
    headers = {"Authorization": f"Bearer {secret}", "X-Plain": "shown"}
    output = run(site.url(), headers=headers, params={"api_key": secret})
    assert site.seen[0].headers["authorization"] == f"Bearer {secret}"
    assert site.seen[0].path == f"/?api_key={secret}"
    assert secret not in output.model_dump_json()
    assert "you said" in output.body_text
    assert secret not in run(site.url("/json"), headers=headers).model_dump_json()
    with pytest.raises(ActionError) as failed:
        run(site.url("/fail"), headers=headers)
    assert secret not in f"{failed.value.message} {failed.value.details}"
    odd = "s3cr3t/4 2"
    with pytest.raises(ActionError) as failed:
        run(site.url("/missing"), params={"token": odd})
    assert site.seen[-1].path == "/missing?token=s3cr3t%2F4+2"
    assert "4+2" not in f"{failed.value.message} {failed.value.details}"
    parsed = http_request.parse_input({"url": site.url(), "headers": headers, "params": {"api_key": secret}})
    assert secret not in repr(parsed)
    assert parsed.headers["X-Plain"] == "shown"


def test_an_empty_secret_masks_nothing(serve):
    output = run(serve({"/": (200, {"Content-Type": "text/plain"}, "hello")}).url(), headers={"Authorization": ""})
    assert output.body_text == "hello"


def test_redirects(serve):
    other = serve({"/": (200, {}, "end")})
    site = serve({"/": (302, {"Location": other.url(host="localhost")}, "")})
    assert run(site.url()).status == 302
    output = run(site.url(), follow_redirects=True, headers={"X-Api-Key": "s3cr3t-42", "X-Plain": "1"})
    assert [hop.status for hop in output.redirects] == [302]
    assert "x-api-key" not in other.seen[0].headers
    assert other.seen[0].headers["x-plain"] == "1"


def test_limits(serve):
    output = run(serve({"/": (200, {"Content-Type": "text/plain"}, "x" * 5_000)}).url(), max_response_bytes=1_000)
    assert (output.size_bytes, output.truncated) == (1_000, True)


def test_tls(serve, authority):
    site = serve({"/": (200, {}, "ok")}, tls=authority.server_context(("localhost",)))
    with pytest.raises(ActionError) as failed:
        run(site.url(host="localhost"))
    assert (failed.value.code, failed.value.retryable) == ("TLS_ERROR", False)
    assert run(site.url(host="localhost"), verify_tls=False).status == 200


def test_cancel_ends_a_hanging_request(serve):
    with pytest.raises(Cancelled):
        run(
            serve({"/": lambda h: h.server.site.seen and __import__("time").sleep(0.5)}).url(),
            reporter=RecordingReporter(Signal.CANCEL),
        )


def test_network_errors_are_left_to_the_runtime():
    with pytest.raises(requests.ConnectionError):
        run("http://127.0.0.1:9/")


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"url": "file:///etc/passwd"}, "url"),
        ({"url": "example.org"}, "url"),
        ({"url": "http://user:s3cr3t-42@example.org/"}, "url"),
        ({"url": "http://a b/"}, "url"),
        ({"url": "http://[::1/"}, "url"),
        ({"method": "get"}, "method"),
        ({"headers": {"X\r\nY": "1"}}, "headers"),
        ({"headers": {"X": "a\r\nEvil: 1"}}, "headers"),
        ({"headers": {"X": "日本"}}, "headers"),
        ({"headers": {"Content-Length": "1"}}, "headers"),
        ({"expect_status": [99]}, "expect_status.0"),
        ({"method": "POST", "json": 1, "body": "x"}, ""),
        ({"json": {"a": 1}}, ""),
        ({"timeout_s": 0}, "timeout_s"),
        ({"verify": False}, "verify"),
    ],
)
def test_bad_input_is_named(wrong, field):
    with pytest.raises(InvalidInput) as refused:
        run_action(http_request, {"url": "http://example.org/", **wrong})
    assert [d["field"] for d in refused.value.details] == [".".join(filter(None, ["input", field]))]
    assert "s3cr3t" not in f"{refused.value.message} {refused.value.details}"
