"""The queues every installation has."""

QUEUES = {
    "default": "Ordinary work",
    "high": "Work somebody waits for",
    "low": "Work that can wait",
    "scheduled": "Work started by the clock",
    "agent": "Turns of agents",
    "workflow": "Nodes of workflows",
    "system": "The platform's own work; served by a worker of its own",
}
