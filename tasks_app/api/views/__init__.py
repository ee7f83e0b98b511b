"""The endpoints: each reads the request, calls one query or service, and shows the answer."""
