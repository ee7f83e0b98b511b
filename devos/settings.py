"""Django settings. Everything that may differ between machines comes from the environment (see `devos.conf`)."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from devos.conf import load

# One source of zone data everywhere: the pinned tzdata package, never the machine's own (they differ).
os.environ["PYTHONTZPATH"] = ""

DEVOS = load(os.environ)
BASE_DIR = Path(__file__).resolve().parent.parent


def _running(name: str) -> str:
    """A fact about the platform that runs in DEVOS_HOME, so that commands find its servers; empty when none runs."""
    try:
        return str(json.loads((DEVOS.home / "run.json").read_text()).get(name, ""))
    except (OSError, ValueError):
        return ""


def _kept_secret() -> str:
    """The secret key kept in DEVOS_HOME: made once, readable by the owner only."""
    path = DEVOS.home / "secret_key"
    if path.exists():
        return path.read_text().strip()
    DEVOS.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    value = secrets.token_urlsafe(48)
    path.touch(mode=0o600)
    path.write_text(value)
    return value


if "DEVOS_PLUGINS" not in os.environ:  # a command knows the actions of the platform it speaks to
    DEVOS = DEVOS.model_copy(update={"plugins": _running("plugins")})

DATABASE_URL = os.environ.get("DATABASE_URL") or _running("database_url")
REDIS_URL = os.environ.get("REDIS_URL") or _running("redis_url") or "redis://127.0.0.1:1/0"

DEBUG = DEVOS.debug
SECRET_KEY = DEVOS.secret_key or _kept_secret()
ALLOWED_HOSTS = [h for h in DEVOS.allowed_hosts.split(",") if h]
CSRF_TRUSTED_ORIGINS = [o for o in DEVOS.trusted_origins.split(",") if o]

INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_celery_beat",
    "django_filters",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "tasks_app",
    "devos",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "tasks_app.api.middleware.RequestContextMiddleware",
    "tasks_app.admin.middleware.DeskMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "devos.urls"
ASGI_APPLICATION = "devos.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]


def _pool() -> dict[str, object]:
    if not DEVOS.database_pool:
        return {}
    return {"pool": {"min_size": 0, "max_size": DEVOS.database_pool, "timeout": 10, "max_idle": 300}}


# The statements of the runtime find rows by key, whatever the sizes: plan each once for the connection, and never as a
# scan of a table. Planning them anew each time costs more than running them.
_RUNTIME_PLANS = (
    "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off"
)


def _database(url: str, options: str = "") -> dict[str, object]:
    parts = conninfo_to_dict(url) if url else {"host": "127.0.0.1", "port": "1", "dbname": "devos", "user": "devos"}
    named = {key: str(parts.pop(key, "") or "") for key in ("dbname", "user", "password", "host", "port")}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": named["dbname"],
        "USER": named["user"],
        "PASSWORD": named["password"],
        "HOST": named["host"],
        "PORT": named["port"],
        "CONN_MAX_AGE": 0 if DEVOS.database_pool else None,
        "CONN_HEALTH_CHECKS": True,
        # Django never prepares by itself; prepared statements halve PostgreSQL's work for claim and finish.
        "OPTIONS": {
            "server_side_binding": True,
            "prepare_threshold": 1,
            "connect_timeout": 5,
            **_pool(),
            **parts,
            "options": f"{parts.get('options') or ''} {options}".strip(),
        },
    }


# `runtime` is the same database over a connection of its own: the bookkeeping of a worker must not share the
# connection with the action it runs, which may break a transaction or change session settings.
DATABASES = {
    "default": _database(DATABASE_URL),
    "runtime": {**_database(DATABASE_URL, _RUNTIME_PLANS), "TEST": {"MIRROR": "default"}},
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "devos",
        # The cache only counts requests: whoever asks must not wait for it.
        "OPTIONS": {"socket_connect_timeout": 1, "socket_timeout": 1},
    }
}

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"

STATIC_URL = "/static/"
STATIC_ROOT = Path(os.environ.get("STATIC_ROOT", BASE_DIR / "static_root"))
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedStaticFilesStorage"},
}
WHITENOISE_USE_FINDERS = True

SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = DEVOS.https
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = DEVOS.body_bytes_max

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "tasks_app.api.authentication.InProcessAuthentication",
        "tasks_app.api.authentication.ApiKeyAuthentication",
        "tasks_app.api.authentication.SessionPrincipalAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["tasks_app.api.permissions.HasPrincipal"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["tasks_app.api.parsers.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "tasks_app.api.schema.ApiSchema",
    "DEFAULT_THROTTLE_CLASSES": ["tasks_app.api.throttling.PrincipalThrottle"],
    "EXCEPTION_HANDLER": "tasks_app.api.errors.exception_handler",
}

SPECTACULAR_SETTINGS = {
    "TITLE": "DevOS",
    "DESCRIPTION": "A durable task platform: tasks, jobs, executions, queues and workers.",
    "VERSION": "0.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/",
    "OAS_VERSION": "3.1.0",
    "POSTPROCESSING_HOOKS": [],
    "AUTHENTICATION_WHITELIST": [
        "tasks_app.api.authentication.ApiKeyAuthentication",
        "tasks_app.api.authentication.SessionPrincipalAuthentication",
    ],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

LOGGING_CONFIG = None  # `devos.logs.configure` sets up structlog once, for every process

DEVOS_CELERY_APP = "devos.celery.app"
DEVOS_BELLS = "tasks_app.runtime.queue_celery.CeleryBells"

from devos.unfold import UNFOLD  # noqa: E402, F401

SILENCED_SYSTEM_CHECKS = ["models.W045"]  # CHECKs in SQL are for the database; no form validates these rows
