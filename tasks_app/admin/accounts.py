"""Users and groups on the desk's looks. Only superusers have the permissions for them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest
from unfold.admin import ModelAdmin, TabularInline
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from tasks_app.models import Membership

admin.site.unregister(User)
admin.site.unregister(Group)


class MembershipInline(TabularInline):
    model = Membership
    extra = 0
    fields = ("organization", "role")
    verbose_name_plural = "Memberships"

    def has_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser)

    has_view_permission = has_add_permission = has_change_permission = has_delete_permission = has_permission


@admin.register(User)
class UserAdmin(DjangoUserAdmin, ModelAdmin):
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    inlines = (MembershipInline,)
    # Memberships decide what a user may do on the desk; a wide picker of model permissions would only mislead.
    filter_horizontal = ()
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        ("Access", {"fields": ("is_active", "is_staff", "is_superuser", "groups")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    readonly_fields = ("last_login", "date_joined")
    list_per_page = 25
    show_full_result_count = False
    list_filter_submit = True

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        return self.inlines if obj else ()


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, ModelAdmin):
    list_per_page = 25
