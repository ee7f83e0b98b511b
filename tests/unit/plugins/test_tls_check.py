"""net.tls.check against real TLS servers with certificates made for the test."""

import socket
import ssl
import warnings

import pytest

from devos.plugins.net import tls_check
from tasks_app.domain.errors import ActionError, InvalidInput
from tasks_app.testing import run_action


def run(site, host="localhost", **value):
    return run_action(tls_check, {"host": host, "port": site.port, "timeout_s": 5, **value})


def codes(output):
    return [problem.code for problem in output.problems]


def test_a_good_certificate(serve, authority):
    site = serve({}, tls=authority.server_context(("localhost", "*.shop.test", "127.0.0.1"), days=90))
    output = run(site, ca_pem=authority.ca_pem)
    assert (output.ok, codes(output), output.trusted) == (True, [], True)
    assert 89 <= output.days_left <= 91
    assert output.protocol == "TLSv1.3"
    assert [c.subject for c in output.chain] == ["localhost", "Test Authority"]
    assert output.chain[0].signature == "sha256"
    assert output.chain[0].key == "EC 256"
    assert output.issuer == "Test Authority"
    assert output.names == ["localhost", "*.shop.test", "127.0.0.1"]
    assert run(site, "127.0.0.1", ca_pem=authority.ca_pem).ok
    assert run(site, server_name="a.shop.test", ca_pem=authority.ca_pem).name_matches
    assert codes(run(site, server_name="a.b.shop.test", ca_pem=authority.ca_pem)) == ["NAME_MISMATCH"]


def test_an_unknown_authority(serve, authority):
    site = serve({}, tls=authority.server_context())
    output = run(site)
    assert (codes(output), output.trusted, output.self_signed) == (["UNTRUSTED"], False, False)
    assert output.trust_error


def test_expired_and_expiring(serve, authority):
    expired = run(serve({}, tls=authority.server_context(days=-3)), ca_pem=authority.ca_pem)
    assert codes(expired) == ["EXPIRED"]
    assert -3 <= expired.days_left < -2.9
    soon = serve({}, tls=authority.server_context(days=5))
    assert codes(run(soon, ca_pem=authority.ca_pem)) == ["EXPIRES_SOON"]
    assert run(soon, ca_pem=authority.ca_pem, min_days_left=2).ok


def test_self_signed_and_wrong_name(serve, authority):
    output = run(serve({}, tls=authority.server_context(("other.test",), self_signed=True)))
    assert codes(output) == ["NAME_MISMATCH", "SELF_SIGNED"]
    assert output.self_signed
    nameless = serve({}, tls=authority.server_context(("localhost",), with_names=False))
    assert codes(run(nameless, ca_pem=authority.ca_pem)) == ["NAME_MISMATCH"]


def test_fail_when_bad(serve, authority):
    site = serve({}, tls=authority.server_context(days=1))
    with pytest.raises(ActionError) as failed:
        run(site, ca_pem=authority.ca_pem, fail_when_bad=True)
    assert (failed.value.code, failed.value.retryable) == ("CHECK_FAILED", False)
    assert "expires in" in failed.value.message


def test_old_protocols_are_reported(serve, authority):
    context = authority.server_context()
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    output = run(serve({}, tls=context), ca_pem=authority.ca_pem)
    assert output.protocol == "TLSv1.1"
    assert codes(output) == ["UNTRUSTED", "OLD_PROTOCOL"]


def test_what_is_no_tls_fails(serve):
    with pytest.raises(ActionError) as failed:
        run(serve({}))
    assert (failed.value.code, failed.value.retryable) == ("TLS_HANDSHAKE_FAILED", False)


def test_a_silent_server_is_a_timeout():
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(TimeoutError):
        run_action(tls_check, {"host": "127.0.0.1", "port": listener.getsockname()[1], "timeout_s": 0.2})


def test_addresses_are_guarded(serve, settings):
    settings.DEVOS = settings.DEVOS.model_copy(update={"allow_private_addresses": False})
    with pytest.raises(ActionError) as refused:
        run(serve({}))
    assert refused.value.code == "ADDRESS_REFUSED"


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"host": "https://example.org/"}, "host"),
        ({"host": ""}, "host"),
        ({"port": 0}, "port"),
        ({"ca_pem": "nonsense"}, "ca_pem"),
        ({"server_name": "a b"}, "server_name"),
    ],
)
def test_bad_input_is_named(wrong, field):
    with pytest.raises(InvalidInput) as refused:
        run_action(tls_check, {"host": "example.org", **wrong})
    assert [d["field"] for d in refused.value.details] == [f"input.{field}"]
