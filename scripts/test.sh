#!/usr/bin/env bash
# All tests in one pytest run, quick ones first; arguments go to pytest. `make test` and `.ci/run` call it.
set -euo pipefail
cd "$(dirname "$0")/.."
# The tests start their own servers; DATABASE_URL and REDIS_URL replace them (see tests/embedded.py).
folders=()
for folder in unit integration api acceptance browser; do
    [ -d "tests/$folder" ] && folders+=("tests/$folder")
done
exec .venv/bin/python -m pytest -n 2 --dist loadgroup "${folders[@]}" "$@"
