"""What people see instead of a secret."""

MASK = "**********"
