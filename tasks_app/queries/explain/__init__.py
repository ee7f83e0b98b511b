"""Why a task is not running: ordered reasons, each with its holder, since, until, and who can clear it and how."""

from tasks_app.queries.explain.answer import explain, of
from tasks_app.queries.explain.reason import Explanation, Holder, Reason

__all__ = ["Explanation", "Holder", "Reason", "explain", "of"]
