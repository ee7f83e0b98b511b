"""The guarded client against real servers on loopback."""

import gzip
import socket
import threading
import time
import zlib

import pytest
import requests

from tasks_app.domain.errors import ActionError
from tasks_app.runtime import outbound


@pytest.fixture
def client():
    with outbound.Client(allow_private=True) as made:
        yield made


def refused(**options):
    with pytest.raises(ActionError) as caught:
        outbound.request("GET", **options)
    assert caught.value.code == "ADDRESS_REFUSED"
    assert caught.value.retryable is False
    return caught.value


# -- where it may go --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "0177.1", "127.1", "[::ffff:127.0.0.1]"]
)
def test_loopback_is_refused_before_any_connection(serve, host):
    site = serve({"/": (200, {}, "secret")})
    refused(url=site.url(host=host), allow_private=False)
    assert site.seen == []


@pytest.mark.parametrize(
    "url", ["http://[::1]/", "http://169.254.169.254/latest/meta-data", "http://[fe80::1%25eth0]/"]
)
def test_other_inner_addresses(url):
    refused(url=url, allow_private=False)


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "gopher://127.0.0.1/", "ftp://example.org/", "//x/", "javascript:1"]
)
def test_other_schemes(url):
    refused(url=url, allow_private=True)


@pytest.mark.parametrize("url", ["http://", "http:///path", "http://[::1/", "http://a:99999999/", "http://a b/"])
def test_things_that_are_no_url(url):
    with pytest.raises(ActionError) as caught:
        outbound.request("GET", url, allow_private=True)
    assert caught.value.code == "INVALID_URL"


def test_metadata_is_refused_even_in_development():
    refused(url="http://169.254.169.254/", allow_private=True)


def test_policy_comes_from_settings(serve, settings):
    site = serve({"/": (200, {}, "hello")})
    settings.DEVOS = settings.DEVOS.model_copy(update={"allow_private_addresses": False})
    refused(url=site.url())
    settings.DEVOS = settings.DEVOS.model_copy(update={"allow_private_addresses": True})
    assert outbound.request("GET", site.url()).body == b"hello"


@pytest.mark.parametrize("host", ["0.0.0.0", "0", "0x0.0", "[::]", "[::ffff:0.0.0.0]", "169.254.169.254", "inner.test"])
def test_redirect_to_a_refused_address_is_refused_at_that_hop(serve, host):
    """0.0.0.0 reaches loopback on Linux, so the inner server would answer if anything were sent."""
    inner = serve({"/": (200, {}, "secret")})
    outer = serve({"/": (302, {"Location": inner.url(host=host)}, "")})
    answers = {"outer.test": ["127.0.0.1"], "inner.test": ["127.0.0.1", "0.0.0.0"]}
    with pytest.raises(ActionError) as caught:
        outbound.request(
            "GET",
            f"http://outer.test:{outer.port}/",
            follow_redirects=True,
            allow_private=True,
            resolver=lambda name, port: answers[name],
        )
    assert caught.value.code == "ADDRESS_REFUSED"
    assert outer.paths() == ["/"]
    assert inner.seen == []


@pytest.mark.parametrize("location", ["file:///etc/passwd", "gopher://127.0.0.1:1/", "http://[::1/"])
def test_redirect_to_another_scheme(serve, location):
    site = serve({"/": (302, {"Location": location}, "")})
    with pytest.raises(ActionError) as caught:
        outbound.request("GET", site.url(), follow_redirects=True, allow_private=True)
    assert caught.value.code in {"ADDRESS_REFUSED", "INVALID_URL"}


def test_a_rebinding_name_is_resolved_once_and_the_checked_address_is_used(serve):
    site = serve({"/": (200, {}, "inner")})
    asked = []

    def rebinding(host, port):
        asked.append(host)
        return ["203.0.113.7"] if len(asked) == 1 else ["127.0.0.1"]

    # 203.0.113.0/24 is a test network, so the strict policy refuses it: the second, inner answer is never asked for.
    refused(url=f"http://rebind.test:{site.port}/", allow_private=False, resolver=rebinding)
    assert asked == ["rebind.test"]
    assert site.seen == []


def test_connects_to_what_the_resolver_said_and_sends_the_name(serve):
    site = serve({"/": (200, {}, "ok")})
    asked = []

    def resolver(host, port):
        asked.append((host, port))
        return ["127.0.0.1"]

    answer = outbound.request("GET", f"http://name.test:{site.port}/", allow_private=True, resolver=resolver)
    assert answer.status == 200
    assert answer.peer_address == "127.0.0.1"
    assert asked == [("name.test", site.port)]
    assert site.seen[0].headers["host"] == f"name.test:{site.port}"


def test_tls_checks_the_name_while_connecting_to_the_address(serve, authority):
    site = serve({"/": (200, {}, "ok")}, tls=authority.server_context(("good.test",)))
    options = {"allow_private": True, "resolver": lambda h, p: ["127.0.0.1"], "verify": authority.ca_file}
    answer = outbound.request("GET", f"https://good.test:{site.port}/", **options)
    assert answer.body == b"ok"
    assert answer.peer_certificate
    with pytest.raises(requests.exceptions.SSLError):
        outbound.request("GET", f"https://bad.test:{site.port}/", **options)
    with pytest.raises(requests.exceptions.SSLError):
        outbound.request("GET", f"https://good.test:{site.port}/", **{**options, "verify": True})
    assert outbound.request("GET", f"https://bad.test:{site.port}/", **{**options, "verify": False}).status == 200


def test_unknown_names_look_like_requests_errors():
    def nowhere(host, port):
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    with pytest.raises(requests.exceptions.ConnectionError):
        outbound.request("GET", "http://nowhere.test/", resolver=nowhere, allow_private=True)


def test_nothing_from_the_environment(serve, monkeypatch, tmp_path):
    site = serve({"/": (200, {}, "direct")})
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password hidden\n")
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    assert outbound.request("GET", site.url(), allow_private=True).body == b"direct"
    assert "authorization" not in site.seen[0].headers


# -- redirects ----------------------------------------------------------------------------------------------------


def test_redirects_are_off_by_default(serve, client):
    site = serve({"/": (302, {"Location": "/next"}, ""), "/next": (200, {}, "there")})
    answer = client.request("GET", site.url())
    assert (answer.status, answer.headers["location"]) == (302, "/next")
    assert site.paths() == ["/"]


def test_redirects_are_followed_and_recorded(serve, client):
    site = serve({"/": (301, {"Location": "/b"}, ""), "/b": (307, {"Location": "c?x=1"}, ""), "/c": (200, {}, "end")})
    answer = client.request("GET", site.url(), follow_redirects=True)
    assert answer.body == b"end"
    assert answer.url == site.url("/c?x=1")
    assert [(hop.status, hop.location) for hop in answer.history] == [(301, site.url("/b")), (307, site.url("/c?x=1"))]


def test_redirect_loops_end(serve, client):
    site = serve({"/": (302, {"Location": "/"}, "")})
    with pytest.raises(ActionError) as caught:
        client.request("GET", site.url(), follow_redirects=True, max_redirects=3)
    assert caught.value.code == "TOO_MANY_REDIRECTS"
    assert len(site.seen) == 4


def test_secrets_stay_with_their_host(serve, client):
    other = serve({"/": (200, {}, "")})
    site = serve(
        {
            "/": (302, {"Location": other.url(host="localhost")}, ""),
            "/same": (302, {"Location": "/end"}, ""),
            "/end": (200, {}, ""),
        }
    )
    headers = {"Authorization": "Bearer s3cr3t-42", "Cookie": "a=b", "X-Key": "s3cr3t", "X-Plain": "1"}
    client.request("GET", site.url(), headers=headers, follow_redirects=True, secret_headers=frozenset({"X-Key"}))
    arrived = other.seen[0].headers
    assert not {"authorization", "cookie", "x-key"} & set(arrived)
    assert arrived["x-plain"] == "1"
    client.request("GET", site.url("/same"), headers=headers, follow_redirects=True)
    assert site.seen[-1].headers["authorization"] == "Bearer s3cr3t-42"


def test_post_becomes_get_after_303_and_stays_after_307(serve, client):
    site = serve(
        {"/303": (303, {"Location": "/end"}, ""), "/307": (307, {"Location": "/end"}, ""), "/end": (200, {}, "")}
    )
    client.request("POST", site.url("/303"), json={"a": 1}, follow_redirects=True)
    assert (site.seen[-1].method, site.seen[-1].body) == ("GET", b"")
    assert "content-type" not in site.seen[-1].headers
    client.request("POST", site.url("/307"), json={"a": 1}, follow_redirects=True)
    assert (site.seen[-1].method, site.seen[-1].body) == ("POST", b'{"a": 1}')


def test_user_and_password_in_the_url_become_a_header_and_are_never_shown(serve, client):
    site = serve({"/": (302, {"Location": "/end"}, ""), "/end": (200, {}, "")})
    answer = client.request("GET", f"http://me:s3cr3t-42@127.0.0.1:{site.port}/", follow_redirects=True)
    assert site.seen[-1].headers["authorization"].startswith("Basic ")
    assert "s3cr3t" not in repr(answer)


# -- limits ---------------------------------------------------------------------------------------------------------


def test_size_is_capped(serve, client):
    site = serve({"/": (200, {}, b"x" * 100_000)})
    answer = client.request("GET", site.url(), max_bytes=1_000)
    assert (len(answer.body), answer.truncated) == (1_000, True)
    assert client.request("GET", site.url(), max_bytes=100_000).truncated is False


def test_decompression_bombs_are_counted_after_decoding(serve, client):
    bomb = gzip.compress(b"\0" * 50_000_000)
    site = serve({"/": (200, {"Content-Encoding": "gzip"}, bomb)})
    answer = client.request("GET", site.url(), max_bytes=10_000)
    assert (len(answer.body), answer.truncated) == (10_000, True)


def test_broken_compression_is_a_requests_error(serve, client):
    site = serve({"/": (200, {"Content-Encoding": "gzip"}, zlib.compress(b"no gzip"))})
    with pytest.raises(requests.exceptions.ContentDecodingError):
        client.request("GET", site.url())


def test_body_can_be_declined(serve, client):
    site = serve({"/": (200, {"Content-Type": "image/png"}, b"x" * 1000)})
    answer = client.request("GET", site.url(), accept_body=lambda status, headers: "html" in headers["content-type"])
    assert (answer.skipped, answer.body, answer.status) == (True, b"", 200)
    assert answer.media_type == "image/png"


def drip(part, pause_s=0.05, seconds=5):
    def route(handler):
        try:
            handler.wfile.write(part[0])
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                handler.wfile.write(part[1])
                handler.wfile.flush()
                threading.Event().wait(pause_s)
        except OSError:
            pass
        handler.close_connection = True

    return route


SLOW_HEADERS = drip((b"HTTP/1.1 200 OK\r\nX-Long: ", b"a"))
SLOW_BODY = drip((b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", b"a"))


@pytest.mark.parametrize("route", [SLOW_HEADERS, SLOW_BODY], ids=["headers", "body"])
def test_a_dripping_server_meets_the_total_deadline(serve, client, route):
    site = serve({"/": route, "/quick": (200, {}, "")})
    client.request("GET", site.url("/quick"))  # so that the drip comes on a kept connection
    started = time.monotonic()
    with pytest.raises(requests.exceptions.ReadTimeout, match="no complete answer within"):
        client.request("GET", site.url(), timeout_s=0.3)
    assert time.monotonic() - started < 1.5
    assert client.request("GET", site.url("/quick")).status == 200


def test_a_silent_server_is_a_timeout(client):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with pytest.raises(requests.exceptions.Timeout):
            client.request("GET", f"http://127.0.0.1:{listener.getsockname()[1]}/", timeout_s=0.2)
        with pytest.raises(requests.exceptions.Timeout):
            client.request("GET", f"https://127.0.0.1:{listener.getsockname()[1]}/", timeout_s=0.2)


def test_a_slow_resolver_meets_the_deadline():
    started = time.monotonic()
    with pytest.raises(requests.exceptions.Timeout):
        outbound.request(
            "GET",
            "http://slow.test/",
            timeout_s=0.2,
            allow_private=True,
            resolver=lambda h, p: threading.Event().wait(3) or ["127.0.0.1"],
        )
    assert time.monotonic() - started < 1.5


def test_an_interrupt_ends_a_running_request(serve):
    site = serve({"/": SLOW_BODY})
    stop = threading.Event()
    threading.Timer(0.2, stop.set).start()
    started = time.monotonic()
    with pytest.raises(outbound.OutboundInterrupted):
        outbound.request("GET", site.url(), allow_private=True, interrupted=stop.is_set, timeout_s=10)
    assert time.monotonic() - started < 1.5


# -- reuse ----------------------------------------------------------------------------------------------------------


def test_connections_are_kept_and_no_descriptor_leaks(serve, client):
    ports = set()

    def route(handler):
        ports.add(handler.client_address[1])
        return 200, {}, "ok"

    site = serve({"/": route})
    for _ in range(20):
        client.request("GET", site.url())
    assert len(ports) == 1


def test_open_connection_is_guarded(serve):
    site = serve({})
    with outbound.open_connection("localhost", site.port, allow_private=True) as connection:
        assert connection.getpeername()[1] == site.port
    with pytest.raises(ActionError):
        outbound.open_connection("localhost", site.port, allow_private=False)
