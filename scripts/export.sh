#!/usr/bin/env bash
# Prints the locked requirements with hashes, for machines without uv. Usage: scripts/export.sh runtime|dev
set -euo pipefail
cd "$(dirname "$0")/.."
wanted=(--frozen --quiet --no-emit-project --no-header --no-annotate --format requirements.txt)
[ "${1:?runtime or dev}" = dev ] || wanted+=(--no-dev)
echo "# Made by make lock from uv.lock."
uv export "${wanted[@]}"
