"""The OpenAPI description is complete, and changes only on purpose.

After a wanted change: ``DEVOS_REFRESH_SCHEMA=1 pytest tests/api/test_schema.py``, and look at the difference.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiYamlRenderer
from drf_spectacular.validation import validate_schema

from tests.api.client import Api

GOLDEN = Path(__file__).with_name("schema.golden.yml")


@pytest.fixture
def schema() -> dict[str, Any]:
    with GENERATOR_STATS.silence():
        generated: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
        assert not GENERATOR_STATS, "the description has gaps: manage.py spectacular names them"
    return generated


def test_the_description_is_the_agreed_one(schema: dict[str, Any]) -> None:
    text = OpenApiYamlRenderer().render(schema, renderer_context={}).decode()
    if os.environ.get("DEVOS_REFRESH_SCHEMA"):
        GOLDEN.write_text(text)
    assert yaml.safe_load(text) == yaml.safe_load(GOLDEN.read_text()), "see the docstring of this file"


def test_the_description_is_valid(schema: dict[str, Any]) -> None:
    validate_schema(schema)


def test_every_endpoint_says_what_it_takes_and_answers(schema: dict[str, Any]) -> None:
    seen = set()
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            where = f"{method} {path}"
            assert operation["summary"], where
            assert operation["operationId"] not in seen, where
            seen.add(operation["operationId"])
            good = [code for code in operation["responses"] if code < "300"]
            assert good and all(operation["responses"][code]["content"] for code in good), where
            for code in ("400", "401", "403", "429"):
                content = operation["responses"][code]["content"]["application/json"]
                assert content["schema"] == {"$ref": "#/components/schemas/Failure"}, where
            if method in ("post", "patch"):
                assert operation["requestBody"]["content"]["application/json"]["schema"]["$ref"], where
            if "{" in path:
                assert "404" in operation["responses"], where


@pytest.mark.django_db
def test_schema_and_docs_need_nobody_else(viewer: Api) -> None:
    response = viewer.get("schema/")
    assert response.status_code == 200 and b"/api/tasks" in response.content
    page = viewer.get("docs/").content.decode()
    assert "swagger-ui" in page and "https://" not in page and "//cdn" not in page
    # What the page loads must work under a policy without inline scripts.
    assert "<script>" not in page
    assert viewer.get("docs/?script=").status_code == 200


@pytest.mark.django_db
def test_a_browser_is_sent_to_the_login() -> None:
    response = Api().get("docs/", headers={"Accept": "text/html"})
    assert response.status_code == 302 and "login" in response.headers["Location"]


def test_the_reference_lists_every_endpoint(schema: dict[str, Any]) -> None:
    path = Path(__file__).parents[2] / "docs" / "generate_rest.py"
    spec = importlib.util.spec_from_file_location("generate_rest", path)
    assert spec is not None and spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    now = generate.TARGET.read_text()
    assert generate.page(schema, now) == now, "python docs/generate_rest.py"
