#!/usr/bin/env bash
# Every check that needs no server. Runs them all and fails at the end, so that one run shows everything.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=()

check() {
    local name=$1; shift
    printf '== %s\n' "$name"
    "$@" || failed+=("$name")
}

requirements() {
    uv --version >/dev/null 2>&1 || { echo "skipped: needs uv"; return 0; }
    local group
    for group in runtime dev; do
        scripts/export.sh "$group" | diff -q - "requirements/$group.txt" >/dev/null ||
            { echo "requirements/$group.txt is not what uv.lock says: run make lock"; return 1; }
    done
}

migrations() {
    # Compares models with migration files; the database it would also like to look at is not needed.
    DEVOS_HOME="$(mktemp -d)" .venv/bin/python -W ignore::RuntimeWarning -m django makemigrations \
        --check --dry-run --settings devos.settings
}

check "ruff check" .venv/bin/ruff check .
check "ruff format" .venv/bin/ruff format --check .
check "mypy" .venv/bin/mypy devos tasks_app
check "import rules" .venv/bin/lint-imports
check "migrations" migrations
check "requirements" requirements

if [ ${#failed[@]} -gt 0 ]; then
    printf 'lint failed: %s\n' "$(IFS=,; echo "${failed[*]}")" >&2
    exit 1
fi
echo "lint: all checks passed"
