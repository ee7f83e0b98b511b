"""Actions on the network: HTTP requests, DNS records, TLS certificates."""

from devos.plugins.net.dns_check import dns_check
from devos.plugins.net.http_request import http_request
from devos.plugins.net.tls_check import tls_check
from tasks_app.sdk import Plugin

plugin = Plugin(name="net", version="1", title="Network", actions=[http_request, dns_check, tls_check])
