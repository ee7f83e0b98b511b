"""/api/keys"""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from tasks_app.api.base import ApiView, answer, listed, uuid_of
from tasks_app.api.represent.platform import KeyList, KeyOut, NewKeyOut, key_out, new_key_out
from tasks_app.api.requests import KeyBody
from tasks_app.api.schema import documented
from tasks_app.queries import api_keys
from tasks_app.queries.api_keys import ApiKeyFilter
from tasks_app.services import api_keys as verbs


class Keys(ApiView):
    query = {"GET": ApiKeyFilter}

    @documented("List API keys", KeyList)
    def get(self, request: Request) -> Response:
        return listed(api_keys.page(self.principal, self.parameters), key_out)

    @documented("Create an API key; the answer shows it once", NewKeyOut, status=201, request=KeyBody)
    def post(self, request: Request) -> Response:
        body = self.body(KeyBody)
        row, key = verbs.create(self.principal, body.name, body.role, body.scopes, body.expires_at)
        return answer(new_key_out(row, key), status=201)


class KeyItem(ApiView):
    @documented("Revoke an API key", KeyOut, errors=(404,))
    def delete(self, request: Request, key_id: str) -> Response:
        return answer(key_out(verbs.revoke(self.principal, uuid_of("api_key", key_id))))
