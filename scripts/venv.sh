#!/usr/bin/env bash
# Makes .venv from the lock, or brings it up to date: with uv when it is there, else with venv and pip.
# Usage: scripts/venv.sh runtime|dev
set -euo pipefail
cd "$(dirname "$0")/.."
group=${1:?runtime or dev}
python=${PYTHON:-python3}

die() { printf 'venv: %s\n' "$*" >&2; exit 1; }

if uv --version >/dev/null 2>&1; then
    # --inexact: installing the runtime set must not take the development tools away.
    wanted=(--frozen --inexact)
    [ "$group" = dev ] || wanted+=(--no-dev)
    exec uv sync --quiet "${wanted[@]}"
fi

command -v "$python" >/dev/null || die "there is no $python. Install Python 3.11 or newer, or uv."
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    die "$("$python" --version) is too old: DevOS needs Python 3.11 or newer. Set PYTHON=/path/to/a/newer/python3, or install uv."
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    die "this Python cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv. Or install uv."

[ -x .venv/bin/python ] || "$python" -m venv .venv
pip=(.venv/bin/python -m pip --quiet --disable-pip-version-check)
# --no-compile: the first start compiles what it uses, which is a part of what there is.
"${pip[@]}" install --no-compile --require-hashes -r "requirements/$group.txt"
"${pip[@]}" install --no-deps --editable .
