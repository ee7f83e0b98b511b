"""The web process."""

import os
from typing import Any, cast

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "devos.settings")
# Under ASGI each request has a thread of its own: a connection kept by a thread would never be used again.
os.environ.setdefault("DEVOS_DATABASE_POOL", "16")

_django = get_asgi_application()

from django.conf import settings  # noqa: E402 - needs the line above

from tasks_app.api.body_limit import BodyLimit  # noqa: E402

# Django types its messages as mappings, the protocol as mutable ones.
application = BodyLimit(cast(Any, _django), settings.DEVOS.body_bytes_max)
