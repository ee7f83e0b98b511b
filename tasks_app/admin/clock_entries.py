"""The clock: entries of django-celery-beat on the desk's looks. Only superusers have the permissions for them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django_celery_beat import admin as beat
from django_celery_beat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, SolarSchedule
from unfold.admin import ModelAdmin, TabularInline
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

for model in (PeriodicTask, IntervalSchedule, CrontabSchedule, SolarSchedule, ClockedSchedule):
    admin.site.unregister(model)


class TaskSelectWidget(UnfoldAdminSelectWidget, beat.TaskSelectWidget):
    """The registered tasks, as a select of the desk."""

    template_name = "unfold/widgets/select.html"


class PeriodicTaskForm(beat.PeriodicTaskForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["task"].widget = UnfoldAdminTextInputWidget()
        self.fields["regtask"].widget = TaskSelectWidget()


@admin.register(PeriodicTask)
class PeriodicTaskAdmin(beat.PeriodicTaskAdmin, ModelAdmin):
    form = PeriodicTaskForm
    # The package's own templates carry inline scripts, which the desk's policy refuses.
    change_form_template = None
    date_hierarchy = None
    list_per_page = 25
    show_full_result_count = False
    list_filter = ("enabled", "one_off")
    actions = ("enable_tasks", "disable_tasks")

    def get_actions(self, request: HttpRequest) -> Any:
        return super().get_actions(request) if self.has_change_permission(request) else {}


class PeriodicTaskInline(beat.PeriodicTaskInline, TabularInline):
    pass


class _ScheduleAdmin(ModelAdmin):
    inlines = (PeriodicTaskInline,)
    list_per_page = 25


@admin.register(IntervalSchedule)
class IntervalScheduleAdmin(_ScheduleAdmin):
    pass


@admin.register(CrontabSchedule)
class CrontabScheduleAdmin(_ScheduleAdmin):
    list_display = ("__str__", "human_readable")
    fields = ("human_readable", "minute", "hour", "day_of_month", "month_of_year", "day_of_week", "timezone")
    readonly_fields = ("human_readable",)


@admin.register(SolarSchedule)
class SolarScheduleAdmin(_ScheduleAdmin):
    pass


@admin.register(ClockedSchedule)
class ClockedScheduleAdmin(_ScheduleAdmin):
    fields = ("clocked_time",)
    list_display = ("clocked_time",)
