"""Waits of running jobs, approvals, and the key of events."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.expressions
import tasks_app.domain.clock
import tasks_app.domain.ids
import tasks_app.domain.waits
from django.db import migrations, models


# Events that waits may look back at: those of the runtime itself have no key.
EVENTS = """
create index events_published on events (organization_id, sequence) where key is not null;
create index events_of_key on events (organization_id, key, sequence) where key <> '';
"""

# Retention deletes tasks and jobs in sets, past the ORM.
CASCADES = """
alter table approvals add constraint approvals_of_task foreign key (task_id) references tasks on delete cascade;
alter table approvals add constraint approvals_of_step foreign key (step_id) references job_steps on delete set null;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('tasks_app', '0004_costs'),
    ]

    operations = [
        migrations.CreateModel(
            name='Approval',
            fields=[
                ('id', models.UUIDField(default=tasks_app.domain.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('title', models.CharField(max_length=300)),
                ('details', models.JSONField(null=True)),
                ('role', models.CharField(choices=[('operator', 'operator'), ('admin', 'admin')], default='operator', max_length=16)),
                ('permission', models.CharField(default='approvals.decide', max_length=200)),
                ('status', models.CharField(choices=[(tasks_app.domain.waits.ApprovalState['OPEN'], tasks_app.domain.waits.ApprovalState['OPEN']), (tasks_app.domain.waits.ApprovalState['APPROVED'], tasks_app.domain.waits.ApprovalState['APPROVED']), (tasks_app.domain.waits.ApprovalState['REJECTED'], tasks_app.domain.waits.ApprovalState['REJECTED']), (tasks_app.domain.waits.ApprovalState['EXPIRED'], tasks_app.domain.waits.ApprovalState['EXPIRED']), (tasks_app.domain.waits.ApprovalState['CANCELLED'], tasks_app.domain.waits.ApprovalState['CANCELLED'])], default=tasks_app.domain.waits.ApprovalState['OPEN'], max_length=16)),
                ('decided_by', models.CharField(blank=True, default='', max_length=96)),
                ('decided_at', models.DateTimeField(blank=True, null=True)),
                ('comment', models.CharField(blank=True, default='', max_length=500)),
                ('created_at', models.DateTimeField(default=tasks_app.domain.clock.now, editable=False)),
                ('expires_at', models.DateTimeField()),
            ],
            options={
                'db_table': 'approvals',
            },
        ),
        migrations.AddField(
            model_name='event',
            name='key',
            field=models.CharField(blank=True, max_length=300, null=True),
        ),
        migrations.AddField(
            model_name='jobstep',
            name='check_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='jobstep',
            name='children',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), null=True, size=None),
        ),
        migrations.AddField(
            model_name='jobstep',
            name='deadline_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='jobstep',
            name='event_id',
            field=models.UUIDField(null=True),
        ),
        migrations.AddField(
            model_name='jobstep',
            name='key',
            field=models.CharField(max_length=300, null=True),
        ),
        migrations.AddField(
            model_name='jobstep',
            name='kind',
            field=models.CharField(db_default=tasks_app.domain.waits.StepKind['STEP'], default=tasks_app.domain.waits.StepKind['STEP'], max_length=8),
        ),
        migrations.AddField(
            model_name='jobstep',
            name='organization_id',
            field=models.UUIDField(null=True),
        ),
        migrations.AddField(
            model_name='jobstep',
            name='pattern',
            field=models.CharField(max_length=200, null=True),
        ),
        migrations.AddField(
            model_name='jobstep',
            name='resolved_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='jobstep',
            name='state',
            field=models.CharField(db_default=tasks_app.domain.waits.StepState['DONE'], default=tasks_app.domain.waits.StepState['DONE'], max_length=9),
        ),
        migrations.AddIndex(
            model_name='jobstep',
            index=models.Index(condition=models.Q(('check_at__isnull', False)), fields=['check_at'], name='job_steps_to_check'),
        ),
        migrations.AddIndex(
            model_name='jobstep',
            index=models.Index(condition=models.Q(('kind', tasks_app.domain.waits.StepKind['EVENT']), ('state', tasks_app.domain.waits.StepState['OPEN'])), fields=['organization_id', 'pattern', 'key'], name='job_steps_for_events'),
        ),
        migrations.AddConstraint(
            model_name='jobstep',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', [tasks_app.domain.waits.StepKind['STEP'], tasks_app.domain.waits.StepKind['SPAWN'], tasks_app.domain.waits.StepKind['SLEEP'], tasks_app.domain.waits.StepKind['EVENT'], tasks_app.domain.waits.StepKind['APPROVAL'], tasks_app.domain.waits.StepKind['CHILDREN']])), name='job_steps_kind'),
        ),
        migrations.AddConstraint(
            model_name='jobstep',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', [tasks_app.domain.waits.StepState['OPEN'], tasks_app.domain.waits.StepState['DONE'], tasks_app.domain.waits.StepState['TIMED_OUT'], tasks_app.domain.waits.StepState['CANCELLED']])), name='job_steps_state'),
        ),
        migrations.AddConstraint(
            model_name='jobstep',
            constraint=models.CheckConstraint(condition=django.db.models.expressions.RawSQL("state <> 'open' or (deadline_at is not null and check_at is not null)", (), output_field=models.BooleanField()), name='job_steps_open_has_deadline'),
        ),
        migrations.AddField(
            model_name='approval',
            name='job',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tasks_app.job'),
        ),
        migrations.AddField(
            model_name='approval',
            name='organization',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='tasks_app.organization'),
        ),
        migrations.AddField(
            model_name='approval',
            name='step',
            field=models.OneToOneField(db_constraint=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='approval', to='tasks_app.jobstep'),
        ),
        migrations.AddField(
            model_name='approval',
            name='task',
            field=models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='approvals', to='tasks_app.task'),
        ),
        migrations.AddIndex(
            model_name='approval',
            index=models.Index(fields=['organization', '-id'], name='approvals_list'),
        ),
        migrations.AddIndex(
            model_name='approval',
            index=models.Index(fields=['organization', 'status', '-id'], name='approvals_by_status'),
        ),
        migrations.AddConstraint(
            model_name='approval',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['open', 'approved', 'rejected', 'expired', 'cancelled'])), name='approvals_status'),
        ),
        migrations.AddConstraint(
            model_name='approval',
            constraint=models.CheckConstraint(condition=django.db.models.expressions.RawSQL("(status = 'open') = (decided_at is null)", (), output_field=models.BooleanField()), name='approvals_closed_has_end'),
        ),
        migrations.RunSQL(EVENTS, "drop index events_published; drop index events_of_key;"),
        migrations.RunSQL(
            CASCADES,
            "alter table approvals drop constraint approvals_of_task; alter table approvals drop constraint approvals_of_step;",
        ),
    ]
