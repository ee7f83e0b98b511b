"""Addresses under /api/. Each is written without a slash at its end; the middleware takes one away."""

from __future__ import annotations

from django.urls import path, re_path

from tasks_app.api.views import actions, approvals, docs, executions, jobs, keys, platform, projects, tasks

urlpatterns = [
    path("me", platform.Me.as_view()),
    path("actions", actions.Actions.as_view()),
    path("actions/<str:action_id>", actions.ActionItem.as_view()),
    path("tasks", tasks.Tasks.as_view()),
    path("tasks/bulk", tasks.TaskBulk.as_view()),
    path("tasks/<str:task_id>", tasks.TaskDetail.as_view()),
    path("tasks/<str:task_id>/cancel", tasks.TaskCancel.as_view()),
    path("tasks/<str:task_id>/retry", tasks.TaskRetry.as_view()),
    path("tasks/<str:task_id>/replay", tasks.TaskReplay.as_view()),
    path("tasks/<str:task_id>/priority", tasks.TaskPriority.as_view()),
    path("tasks/<str:task_id>/jobs", tasks.TaskJobs.as_view()),
    path("tasks/<str:task_id>/executions", tasks.TaskExecutions.as_view()),
    path("tasks/<str:task_id>/logs", tasks.TaskLogs.as_view()),
    path("tasks/<str:task_id>/events", tasks.TaskEvents.as_view()),
    path("tasks/<str:task_id>/children", tasks.TaskChildren.as_view()),
    path("tasks/<str:task_id>/stream", tasks.TaskStream.as_view()),
    path("jobs", jobs.Jobs.as_view()),
    path("jobs/<str:job_id>", jobs.JobDetail.as_view()),
    path("jobs/<str:job_id>/retry", jobs.JobRetry.as_view()),
    path("jobs/<str:job_id>/cancel", jobs.JobCancel.as_view()),
    path("executions", executions.Executions.as_view()),
    path("executions/<str:execution_id>", executions.ExecutionItem.as_view()),
    path("executions/<str:execution_id>/logs", executions.ExecutionLogs.as_view()),
    path("approvals", approvals.Approvals.as_view()),
    path("approvals/<str:approval_id>", approvals.ApprovalItem.as_view()),
    path("approvals/<str:approval_id>/approve", approvals.ApprovalApprove.as_view()),
    path("approvals/<str:approval_id>/reject", approvals.ApprovalReject.as_view()),
    path("queues", platform.Queues.as_view()),
    path("queues/<str:name>", platform.QueueItem.as_view()),
    path("queues/<str:name>/pause", platform.QueuePause.as_view()),
    path("queues/<str:name>/resume", platform.QueueResume.as_view()),
    path("workers", platform.Workers.as_view()),
    path("projects", projects.Projects.as_view()),
    path("projects/<str:project>", projects.ProjectItem.as_view()),
    path("keys", keys.Keys.as_view()),
    path("keys/<str:key_id>", keys.KeyItem.as_view()),
    path("events", platform.Events.as_view()),
    path("events/<str:event_id>", platform.EventItem.as_view()),
    path("audit", platform.Audit.as_view()),
    path("schema", docs.SchemaView, name="api-schema"),
    path("docs", docs.DocsView.as_view(), name="api-docs"),
    re_path(r"^.*$", docs.Unknown.as_view()),
]
