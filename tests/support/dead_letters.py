"""Dead letters by the thousand, as the runtime would have left them."""

# Parameters: org, count, queue, input (JSON text of the jobs), groups (how many fingerprints).
SEED = """
with n as (select n, devos_new_id() as task, devos_new_id() as job from generate_series(1, %(count)s) n),
t as (
  insert into tasks (id, type, name, description, status, priority, organization_id, input, created_by_type,
    created_by_id, correlation_id, request_id, created_at, completed_at, check_at, cancel_requested_by, cancel_reason)
  select task, 'core.fail', '', '', 'failed', 0, %(org)s, '{"times": 1}', 'system', 'test', 'seed', '', now(), now(),
    now(), '', '' from n),
j as (
  insert into jobs (id, task_id, organization_id, action_id, queue, status, priority, attempt, max_attempts,
    interruptions, uncounted, available_at, created_at, completed_at, after, input)
  select job, task, %(org)s, 'core.fail', %(queue)s, 'failed', 0, 1, 1, 0, 0, now(), now(), now(), '{}', %(input)s
  from n)
insert into dead_letter_jobs (id, organization_id, job_id, execution_id, action_id, error, fingerprint, status,
  decided_by, reason, created_at)
select devos_new_id(), %(org)s, job, job, 'core.fail', '{"code": "BROKEN", "message": "x"}',
  md5((n %% %(groups)s)::text) || md5('x'), 'open', '', '', now()
from n
"""
FAILS = '{"times": 1000, "code": "BROKEN", "retryable": false, "message": "again"}'
SUCCEEDS = '{"times": 0}'
