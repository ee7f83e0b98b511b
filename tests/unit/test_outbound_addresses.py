"""Which addresses may be called, in every spelling."""

import ipaddress

import pytest

from tasks_app.domain.errors import ActionError
from tasks_app.runtime.outbound_addresses import checked_addresses, kind_of, literal


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("8.8.8.8", "public"),
        ("2606:4700::1111", "public"),
        ("127.0.0.1", "private"),
        ("127.255.255.254", "private"),
        ("::1", "private"),
        ("10.0.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.168.1.1", "private"),
        ("100.64.0.1", "private"),
        ("198.18.0.1", "private"),
        ("192.0.2.1", "private"),
        ("fd00::1", "private"),
        ("fec0::1", "private"),
        ("0.0.0.0", "forbidden"),
        ("::", "forbidden"),
        ("169.254.169.254", "forbidden"),
        ("169.254.1.1", "forbidden"),
        ("100.100.100.200", "forbidden"),
        ("fd00:ec2::254", "forbidden"),
        ("fe80::1", "forbidden"),
        ("224.0.0.1", "forbidden"),
        ("ff02::1", "forbidden"),
        ("255.255.255.255", "forbidden"),
        ("240.0.0.1", "forbidden"),
        ("::127.0.0.1", "forbidden"),
        ("::ffff:127.0.0.1", "private"),
        ("::ffff:169.254.169.254", "forbidden"),
        ("::ffff:8.8.8.8", "public"),
        ("2002:7f00:1::", "private"),
        ("2002:a9fe:a9fe::", "forbidden"),
        ("64:ff9b::7f00:1", "private"),
        ("64:ff9b::a9fe:a9fe", "forbidden"),
        ("64:ff9b::808:808", "public"),
        ("64:ff9b:1::7f00:1", "forbidden"),
        ("2001:0:a9fe:a9fe:8000:63bf:3fff:fdd2", "forbidden"),
    ],
)
def test_kind_of_address(address, kind):
    assert kind_of(ipaddress.ip_address(address)) == kind


@pytest.mark.parametrize(
    "spelling",
    [
        "2130706433",
        "0x7f.1",
        "0x7f000001",
        "0177.0.0.1",
        "017700000001",
        "127.1",
        "127.0.1",
        "127.0.0.1.",
        "[::1]",
        "::1",
        "[::ffff:7f00:1]",
        "[::ffff:127.0.0.1]",
        "0:0:0:0:0:0:0:1",
    ],
)
def test_odd_spellings_of_loopback_never_reach_the_resolver(spelling):
    def resolver(host, port):
        raise AssertionError(f"asked for {host}")

    with pytest.raises(ActionError) as refused:
        checked_addresses(spelling, 80, allow_private=False, resolver=resolver)
    assert refused.value.code == "ADDRESS_REFUSED"
    assert refused.value.retryable is False


@pytest.mark.parametrize("spelling", ["99999999999999", "0x1ffffffff", "1.2.3.400", "09.1.1.1"])
def test_numbers_that_are_no_address_are_refused(spelling):
    with pytest.raises(ActionError, match="not a valid"):
        literal(spelling)


def test_names_are_no_literals():
    assert literal("example.org") is None
    assert literal("0x7f.example") is None


def test_one_private_answer_refuses_the_name():
    with pytest.raises(ActionError) as refused:
        checked_addresses("mixed.test", 80, allow_private=False, resolver=lambda h, p: ["8.8.8.8", "10.0.0.1"])
    assert "10.0.0.1" in refused.value.message


def test_private_is_allowed_when_the_policy_says_so_but_metadata_never():
    assert checked_addresses("a.test", 80, allow_private=True, resolver=lambda h, p: ["10.0.0.1"]) == ["10.0.0.1"]
    for forbidden in ("169.254.169.254", "fe80::1%eth0", "0.0.0.0"):
        with pytest.raises(ActionError, match="never allowed"):
            checked_addresses("a.test", 80, allow_private=True, resolver=lambda h, p, a=forbidden: [a])
