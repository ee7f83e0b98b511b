"""monitor.http.check."""

import time

import pytest

from devos.plugins.monitor import http_check
from devos.plugins.monitor.pattern import matches
from tasks_app.domain.errors import ActionError, InvalidInput
from tasks_app.testing import run_action


def run(url, **value):
    return run_action(http_check, {"url": url, **value})


def codes(output):
    return [reason.code for reason in output.reasons]


@pytest.fixture
def site(serve):
    return serve(
        {
            "/": (200, {"Content-Type": "text/plain"}, "All systems go\nversion 42"),
            "/bad": (500, {}, ""),
            "/moved": (302, {"Location": "/"}, ""),
            "/slow": lambda h: time.sleep(0.05) or (200, {}, ""),
        }
    )


def test_up(site):
    output = run(site.url(), body_contains="systems", body_matches=r"^version \d+$", max_latency_ms=5_000)
    assert (output.state, output.reasons, output.status) == ("up", [], 200)
    assert output.latency_ms > 0
    assert output.tls_days_left is None
    assert (run(site.url("/moved")).state, run(site.url("/moved")).redirects) == ("up", 1)


def test_down(site):
    assert codes(run(site.url("/bad"))) == ["STATUS"]
    assert codes(run(site.url("/moved"), follow_redirects=False)) == ["STATUS"]
    assert codes(run(site.url(), body_contains="nothing", body_matches="^never$")) == [
        "BODY_MISSES_TEXT",
        "BODY_MISSES_PATTERN",
    ]
    assert run(site.url("/bad"), expect_status=[500]).state == "up"
    # A refusal comes at once, but on a busy machine not within the time that the slow page must not get.
    for url, limit_s, code in (
        ("http://127.0.0.1:9/", 10, "CONNECTION_FAILED"),
        (site.url("/slow"), 0.02, "NETWORK_TIMEOUT"),
    ):
        output = run(url, timeout_s=limit_s)
        assert (output.state, codes(output)) == ("down", [code])


def test_degraded(site):
    output = run(site.url("/slow"), max_latency_ms=10)
    assert (output.state, codes(output)) == ("degraded", ["SLOW"])


def test_certificates(serve, authority):
    site = serve({"/": (200, {}, "")}, tls=authority.server_context(("localhost",), days=5))
    assert codes(run(site.url(host="localhost"))) == ["TLS_ERROR"]
    output = run(site.url(host="localhost"), verify_tls=False)
    assert (output.state, codes(output)) == ("degraded", ["CERTIFICATE_EXPIRES"])
    assert 4.9 < output.tls_days_left < 5.1


def test_fail_when_down(site):
    with pytest.raises(ActionError) as failed:
        run(site.url("/bad"), fail_when_down=True)
    assert (failed.value.code, failed.value.retryable) == ("CHECK_FAILED", False)
    assert failed.value.details["state"] == "down"
    assert run(site.url("/slow"), max_latency_ms=10, fail_when_down=True).state == "degraded"


def test_refused_addresses_are_an_error_not_a_result(site, settings):
    settings.DEVOS = settings.DEVOS.model_copy(update={"allow_private_addresses": False})
    with pytest.raises(ActionError) as refused:
        run(site.url())
    assert refused.value.code == "ADDRESS_REFUSED"


def test_a_pattern_that_explodes_is_stopped():
    started = time.monotonic()
    with pytest.raises(ActionError) as failed:
        matches(r"^(a+)+$", "a" * 60 + "!", timeout_s=0.5)
    assert failed.value.code == "PATTERN_TOO_SLOW"
    assert time.monotonic() - started < 3


@pytest.mark.parametrize("text", ["ü日本\U0001f600", "\ud800", "\x00"])
def test_patterns_take_any_text(text):
    assert matches(".", text, timeout_s=10)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"body_matches": "("}, "body_matches"),
        ({"body_matches": "a" * 501}, "body_matches"),
        ({"body_contains": ""}, "body_contains"),
        ({"url": "gopher://x/"}, "url"),
        ({"method": "POST"}, "method"),
    ],
)
def test_bad_input_is_named(wrong, field):
    with pytest.raises(InvalidInput) as refused:
        run_action(http_check, {"url": "http://example.org/", **wrong})
    assert [d["field"] for d in refused.value.details] == [f"input.{field}"]
