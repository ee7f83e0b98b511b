"""What Django cannot say: partitions, append-only tables, ids made in SQL, and vacuum settings of the hot tables."""

from django.db import migrations

FUNCTIONS = r"""
-- Ids made in SQL: a UUIDv7 whose random part is a counter. Unique in this database, ordered, and ten times cheaper
-- than gen_random_uuid(), which opens the random device for every row.
create sequence devos_ids cache 100;
create function devos_new_id(at timestamptz default clock_timestamp()) returns uuid
language sql volatile parallel safe as $$
  select encode(substring(int8send((extract(epoch from at) * 1000)::bigint) from 3) || '\x7000'::bytea
    || int8send(nextval('devos_ids') - 9223372036854775807 - 1), 'hex')::uuid
$$;

create function devos_refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'rows of % are written once: % refused', tg_table_name, tg_op using errcode = 'integrity_constraint_violation';
end $$;

-- Makes the monthly partitions from this month to `ahead` months on; returns how many were new.
create function devos_ensure_partitions(parent text, ahead int) returns int language plpgsql as $$
declare
  month date := date_trunc('month', now() at time zone 'utc');
  part text;
  made int := 0;
begin
  for i in 0..ahead loop
    part := format('%s_%s', parent, to_char(month, 'YYYY_MM'));
    if to_regclass(part) is null then
      execute format('create table %I partition of %I for values from (%L) to (%L)', part, parent,
        month::timestamp at time zone 'utc', (month + interval '1 month')::timestamp at time zone 'utc');
      made := made + 1;
    end if;
    month := month + interval '1 month';
  end loop;
  return made;
end $$;
"""

PARTITIONED = """
create sequence events_sequence;
create table events (
  id uuid not null default devos_new_id(),
  sequence bigint not null default nextval('events_sequence'),
  type varchar(200) not null,
  version smallint not null default 1,
  timestamp timestamptz not null default now(),
  organization_id uuid not null,
  actor_type varchar(16) not null,
  actor_id varchar(64) not null,
  resource_type varchar(200),
  resource_id varchar(300),
  task_id uuid,
  job_id uuid,
  execution_id uuid,
  data jsonb not null default '{}',
  metadata jsonb not null default '{}',
  correlation_id varchar(128) not null,
  causation_id uuid,
  primary key (id, timestamp)
) partition by range (timestamp);
create index events_of_task on events (task_id, sequence) where task_id is not null;
-- Sync runs have no task: their events are found by execution.
create index events_of_sync_run on events (execution_id) where task_id is null;
create table events_default partition of events default;

create sequence execution_logs_id_seq;
create table execution_logs (
  id bigint not null default nextval('execution_logs_id_seq'),
  execution_id uuid not null,
  level varchar(5) not null check (level in ('debug', 'info', 'warn', 'error')),
  message text not null,
  metadata jsonb not null default '{}',
  timestamp timestamptz not null default now(),
  primary key (id, timestamp)
) partition by range (timestamp);
create index execution_logs_of_execution on execution_logs (execution_id, id);
create table execution_logs_default partition of execution_logs default;

select devos_ensure_partitions('events', 2);
select devos_ensure_partitions('execution_logs', 2);
"""

WRITTEN_ONCE = """
create trigger events_append_only before update or delete on events
  for each row execute function devos_refuse_change();
create trigger audit_append_only before update or delete on audit_entries
  for each row execute function devos_refuse_change();
create trigger executions_sealed before update on executions
  for each row when (old.status <> 'running') execute function devos_refuse_change();
"""

# A queue leaves dead rows behind as fast as it works; the default of 20 % of the table would let claims step over them.
VACUUM = """
alter table jobs set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_limit = 2000, autovacuum_analyze_scale_factor = 0.02, fillfactor = 85);
alter table tasks set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_limit = 2000, fillfactor = 85);
alter table executions set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_limit = 2000, fillfactor = 85);
"""


class Migration(migrations.Migration):
    dependencies = [("tasks_app", "0001_tables")]

    operations = [
        migrations.RunSQL(
            FUNCTIONS,
            "drop function devos_new_id(timestamptz); drop sequence devos_ids; drop function devos_refuse_change() cascade; "
            "drop function devos_ensure_partitions(text, int);",
        ),
        migrations.RunSQL(
            PARTITIONED,
            "drop table events, execution_logs; drop sequence events_sequence, execution_logs_id_seq;",
        ),
        migrations.RunSQL(WRITTEN_ONCE, migrations.RunSQL.noop),
        migrations.RunSQL(VACUUM, migrations.RunSQL.noop),
    ]
