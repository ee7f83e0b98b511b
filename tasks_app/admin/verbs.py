"""Verbs of the desk: a confirmation page with a reason, then one call of a service. Nothing happens on GET."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.contrib.admin import helpers
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from unfold.widgets import UnfoldAdminTextareaWidget

from tasks_app.admin.base import RuntimeAdmin
from tasks_app.admin.principal import may, principal_of
from tasks_app.domain import jsonsafe
from tasks_app.domain.errors import DevosError
from tasks_app.domain.principal import Principal

REASON_MAX = 500


class ReasonForm(forms.Form):
    """Why: it goes into the audit."""

    reason = forms.CharField(
        required=False,
        max_length=REASON_MAX,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 2}),
        help_text="Kept in the audit, for whoever asks later.",
    )

    def __init__(self, *args: Any, row: Any = None, **kwargs: Any) -> None:
        self.row = row
        super().__init__(*args, **kwargs)

    def clean_reason(self) -> str:
        return jsonsafe.clean_text(self.cleaned_data["reason"].strip())


class RequiredReasonForm(ReasonForm):
    """For what somebody will ask about later."""

    missing = "Say why."

    def clean_reason(self) -> str:
        reason = super().clean_reason()
        if not reason:
            raise forms.ValidationError(self.missing)
        return reason


@dataclass(frozen=True)
class Verb:
    """``run(principal, row, cleaned)`` calls a service and returns what to tell, and optionally where to go.

    ``offered(row)`` says whether the verb makes sense now: only for what the page shows, the service decides.
    ``press`` is on the button that confirms; ``bulk_form_class`` asks for what a selection needs.
    """

    name: str
    label: str
    icon: str
    question: str
    explanation: str
    permission: str
    run: Callable[[Principal, Any, dict[str, Any]], str | tuple[str, str]]
    offered: Callable[[Any], bool] = lambda row: True
    form_class: type[ReasonForm] = ReasonForm
    bulk_form_class: type[ReasonForm] = ReasonForm
    danger: bool = False
    press: str = ""


def _subject(row: Any) -> dict[str, Any]:
    """A row as the confirmation names it."""
    names = (getattr(row, name, "") for name in ("name", "type", "action_id"))
    return {
        "pk": row.pk,
        "title": next((name for name in names if name), str(row)),
        "status": getattr(row, "status", ""),
        "public_id": getattr(row, "public_id", ""),
    }


@dataclass(frozen=True)
class Button:
    """A verb as the page shows it: disabled with ``why`` when it cannot be used."""

    verb: Verb
    url: str
    why: str = ""


class VerbsAdmin(RuntimeAdmin):
    """Adds ``<id>/do/<verb>/`` to the pages of rows, and bulk actions with the same confirmation."""

    verbs: ClassVar[Sequence[Verb]] = ()
    bulk: ClassVar[Sequence[str]] = ()
    confirm_template = "admin/desk/confirm.html"

    def get_urls(self) -> list[URLPattern]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_verb"
        view = self.admin_site.admin_view(self.verb_view)
        return [path("<path:object_id>/do/<slug:verb>/", view, name=name), *super().get_urls()]

    def organization_of(self, row: Any) -> Any:
        return getattr(row, "organization_id", None)

    def verb(self, name: str) -> Verb:
        found = next((v for v in self.verbs if v.name == name), None)
        if found is None:
            raise Http404(f"There is no verb {name[:40]!r}.")
        return found

    def buttons(self, request: HttpRequest, row: Any) -> list[Button]:
        """The verbs that make sense for ``row``; those the user may not use are shown, and say why not."""
        shown = []
        for verb in self.verbs:
            if verb.offered(row):
                allowed = may(request, verb.permission, self.organization_of(row))
                why = "" if allowed else f"Your role does not allow this ({verb.permission})."
                shown.append(Button(verb, self.verb_url(row, verb.name), why))
        return shown

    def verb_url(self, row: Any, name: str) -> str:
        return reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_verb", args=[row.pk, name])

    def verb_view(self, request: HttpRequest, object_id: str, verb: str) -> HttpResponse:
        chosen, row = self.verb(verb), self.find(request, object_id)
        form = chosen.form_class(request.POST if request.method == "POST" else None, row=row)
        error: DevosError | None = None
        if request.method == "POST" and form.is_valid():
            try:
                told = chosen.run(principal_of(request, self.organization_of(row)), row, form.cleaned_data)
            except DevosError as refused:
                error = refused
            else:
                text, address = told if isinstance(told, tuple) else (told, self.page_url(row))
                messages.success(request, text)
                return HttpResponseRedirect(address)
        return self._confirm(request, chosen, form, error, [row], self.page_url(row), row)

    def _confirm(
        self,
        request: HttpRequest,
        verb: Verb,
        form: ReasonForm,
        error: DevosError | None,
        rows: Sequence[Any],
        back: str,
        row: Any = None,
        subjects: Sequence[dict[str, Any]] | None = None,
    ) -> HttpResponse:
        """``subjects`` stand for rows that are too many to name."""
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": row,
            "title": verb.question,
            "verb": verb,
            "form": form,
            "error": error,
            "subjects": [_subject(one) for one in rows] if subjects is None else subjects,
            "back": back,
            "bulk_action": "" if row is not None or subjects is not None else f"bulk_{verb.name}",
            "checkbox_name": helpers.ACTION_CHECKBOX_NAME,
        }
        status = error.status if error else 400 if form.is_bound and not form.is_valid() else 200
        return TemplateResponse(request, self.confirm_template, context, status=status)

    # -- the same verbs on a selection

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        verbs = [self.verb(name) for name in self.bulk]
        return {
            f"bulk_{verb.name}": (self._bulk_action(verb), f"bulk_{verb.name}", f"{verb.label} selected")
            for verb in verbs
            if may(request, verb.permission)
        }

    def _bulk_action(self, verb: Verb) -> Callable[[Any, HttpRequest, QuerySet], HttpResponse | None]:
        def act(model_admin: Any, request: HttpRequest, rows: QuerySet) -> HttpResponse | None:
            chosen = list(rows[: self.list_per_page * 4])
            confirmed = request.POST.get("confirmed") == "yes"
            form = verb.bulk_form_class(request.POST if confirmed else None)
            if not confirmed or not form.is_valid():
                return self._confirm(request, verb, form, None, chosen, request.get_full_path())
            self._run_each(request, verb, chosen, form.cleaned_data)
            return HttpResponseRedirect(request.get_full_path())

        return act

    def _run_each(self, request: HttpRequest, verb: Verb, rows: list[Any], cleaned: dict[str, Any]) -> None:
        """Each row on its own: one that is refused does not hold up the others."""
        done, refused = 0, []
        for row in rows:
            try:
                verb.run(principal_of(request, self.organization_of(row)), row, cleaned)
                done += 1
            except DevosError as error:
                refused.append(f"{row}: {error.message}")
        if done:
            messages.success(request, f"{verb.label}: {done} done.")
        if refused:
            more = f" and {len(refused) - 5} more" if len(refused) > 5 else ""
            messages.error(request, f"{verb.label}: {len(refused)} refused. {'; '.join(refused[:5])}{more}")
