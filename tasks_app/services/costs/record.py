"""Record: what an attempt has spent is written down while it runs.

Not with its end: money that was spent is spent, also when the process dies before it can finish, and also when the
result is refused because the lease was lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from tasks_app.domain.costs import Cost
from tasks_app.services import sql

_RECORD = """
insert into execution_costs (id, organization_id, project_id, action_id, task_id, job_id, execution_id, provider, model,
  input_tokens, output_tokens, credits, amount, currency, key, day, created_at)
select i.id, e.organization_id, t.project_id, e.action_id, e.task_id, e.job_id, e.id, i.provider, i.model,
  i.input_tokens, i.output_tokens, i.credits, i.amount, i.currency, i.key, (i.at at time zone 'utc')::date, i.at
from jsonb_to_recordset(%(rows)s::jsonb) as i(id uuid, at timestamptz, provider text, model text, input_tokens bigint,
    output_tokens bigint, credits numeric, amount numeric, currency text, key text)
  join executions e on e.id = %(execution)s left join tasks t on t.id = e.task_id
on conflict do nothing
"""


def record(execution_id: UUID, costs: Sequence[Cost], using: str = sql.RUNTIME) -> None:
    """Write costs of an execution. One that is there already (by id, or by key within the job) is left as it is."""
    rows = [{name: getattr(one, name) for name in Cost.__slots__} for one in costs]
    sql.run(_RECORD, {"rows": sql.document(rows), "execution": execution_id}, using)
