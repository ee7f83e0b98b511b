"""Addresses under /api/."""

urlpatterns: list = []
