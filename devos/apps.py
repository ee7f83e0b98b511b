"""The project as a Django app: logging, templates, static files and the admin's looks."""

from django.apps import AppConfig


class DevosConfig(AppConfig):
    name = "devos"
    verbose_name = "DevOS"

    def ready(self) -> None:
        from devos.logs import configure

        configure()
