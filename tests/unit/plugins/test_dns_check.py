"""net.dns.check against a real DNS server on loopback."""

import socket
import threading

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import pytest

from devos.plugins.net import dns_check
from devos.plugins.net.dns_check import split_server
from tasks_app.domain.errors import ActionError, InvalidInput
from tasks_app.testing import run_action

ZONE = {
    ("example.test.", "A"): ["192.0.2.1", "192.0.2.2"],
    ("example.test.", "AAAA"): ["2001:db8::1"],
    ("example.test.", "MX"): ["10 Mail.example.test."],
    ("example.test.", "TXT"): ['"v=spf1 " "-all"', '"with \\"quotes\\""'],
    ("www.example.test.", "CNAME"): ["example.test."],
    ("1.2.0.192.in-addr.arpa.", "PTR"): ["example.test."],
}


def answer(query):
    reply = dns.message.make_response(query)
    reply.flags |= dns.flags.AA | dns.flags.RA
    question = query.question[0]
    name, kind = question.name.to_text(), dns.rdatatype.to_text(question.rdtype)
    if name == "broken.test.":
        reply.set_rcode(dns.rcode.SERVFAIL)
    elif name == "silent.test.":
        return None
    elif (name, kind) in ZONE:
        reply.answer.append(dns.rrset.from_text(name, 300, "IN", kind, *ZONE[name, kind]))
    elif (name, "CNAME") in ZONE:
        target = ZONE[name, "CNAME"][0]
        reply.answer.append(dns.rrset.from_text(name, 300, "IN", "CNAME", target))
        if (target, kind) in ZONE:
            reply.answer.append(dns.rrset.from_text(target, 300, "IN", kind, *ZONE[target, kind]))
    elif not any(known == name for known, _ in ZONE):
        reply.set_rcode(dns.rcode.NXDOMAIN)
    return reply


@pytest.fixture(scope="module")
def nameserver():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 0))

    def work():
        while True:
            data, peer = server.recvfrom(4_096)
            if data == b"end":
                return
            reply = answer(dns.message.from_wire(data))
            if reply is not None:
                server.sendto(reply.to_wire(), peer)

    thread = threading.Thread(target=work)
    thread.start()
    host, port = server.getsockname()
    yield f"{host}:{port}"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as knock:
        knock.sendto(b"end", (host, port))
    thread.join()
    server.close()


def run(nameserver, name="example.test", **value):
    return run_action(dns_check, {"name": name, "nameserver": nameserver, "timeout_s": 2, **value})


def test_records_as_expected(nameserver):
    output = run(
        nameserver,
        types=["A", "AAAA", "MX", "TXT"],
        expect={
            "A": ["192.0.2.2", "192.0.2.1"],
            "AAAA": ["2001:0db8:0:0::1"],
            "MX": ["10 mail.example.test."],
            "TXT": ["v=spf1 -all"],
        },
    )
    assert (output.ok, output.problems) == (True, [])
    found = {one.type: one for one in output.answers}
    assert found["A"].values == ["192.0.2.1", "192.0.2.2"]
    assert found["A"].ttl_s == 300
    assert found["MX"].values == ["10 mail.example.test"]
    assert found["TXT"].values == ["v=spf1 -all", 'with "quotes"']
    assert found["A"].elapsed_ms > 0


def test_what_is_wrong_is_said(nameserver):
    output = run(nameserver, expect={"A": ["192.0.2.1", "192.0.2.9"]}, exact=True)
    assert not output.ok
    assert (output.answers[0].missing, output.answers[0].unexpected) == (["192.0.2.9"], ["192.0.2.2"])
    assert output.problems == ["A: missing 192.0.2.9; unexpected 192.0.2.2"]
    with pytest.raises(ActionError) as failed:
        run(nameserver, expect={"A": ["192.0.2.9"]}, fail_when_wrong=True)
    assert (failed.value.code, failed.value.retryable) == ("CHECK_FAILED", False)
    assert failed.value.details["answers"][0]["missing"] == ["192.0.2.9"]


@pytest.mark.parametrize(
    ("name", "state"),
    [("nowhere.test", "nxdomain"), ("silent.test", "timeout"), ("broken.test", "server_failure")],
)
def test_failures_are_told_apart(nameserver, name, state):
    output = run(nameserver, name, timeout_s=0.3)
    assert (output.ok, output.answers[0].state) == (False, state)


def test_a_name_without_such_records(nameserver):
    assert run(nameserver, types=["NS"]).answers[0].state == "no_records"
    assert run(nameserver, types=["NS"], expect={"NS": []}).ok


def test_aliases_and_addresses(nameserver):
    output = run(nameserver, "www.example.test", types=["A"])
    assert (output.answers[0].canonical_name, output.answers[0].values) == ("example.test", ["192.0.2.1", "192.0.2.2"])
    assert run(nameserver, "192.0.2.1", types=["PTR"]).answers[0].values == ["example.test"]


def test_nameservers_are_guarded(nameserver, settings):
    settings.DEVOS = settings.DEVOS.model_copy(update={"allow_private_addresses": False})
    with pytest.raises(ActionError) as refused:
        run(nameserver)
    assert refused.value.code == "ADDRESS_REFUSED"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("192.0.2.53", ("192.0.2.53", 53)),
        ("192.0.2.53:5353", ("192.0.2.53", 5353)),
        ("2001:db8::1", ("2001:db8::1", 53)),
        ("[2001:db8::1]:5353", ("2001:db8::1", 5353)),
        ("ns.example", ("ns.example", 53)),
    ],
)
def test_server_spellings(text, expected):
    assert split_server(text) == expected


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "a" * 64 + ".test"}, "name"),
        ({"name": "a..b"}, "name"),
        ({"types": []}, "types"),
        ({"types": ["BOGUS"]}, "types.0"),
        ({"nameserver": "a:b:c"}, "nameserver"),
        ({"nameserver": "192.0.2.1:99999"}, "nameserver"),
        ({"expect": {"MX": ["10 x"]}}, ""),
    ],
)
def test_bad_input_is_named(wrong, field):
    with pytest.raises(InvalidInput) as refused:
        run_action(dns_check, {"name": "example.test", **wrong})
    assert [d["field"] for d in refused.value.details] == [".".join(filter(None, ["input", field]))]
