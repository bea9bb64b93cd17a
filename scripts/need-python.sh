#!/usr/bin/env bash
# Prints a Python 3.11 or later that can make virtual environments; else says in one line what to do.
set -uo pipefail
problem="There is no python3."
for python in "${PYTHON:-python3}" python3.13 python3.12 python3.11; do
    command -v "$python" >/dev/null 2>&1 || continue
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
    if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        problem="$(command -v "$python") is Python $version. Install a later one (sudo apt-get install python3.11-venv, brew install python@3.13), or name one: make PYTHON=/path/to/python3."
    elif "$python" -c 'import venv, ensurepip' >/dev/null 2>&1; then
        echo "$python"
        exit 0
    else
        problem="$(command -v "$python") has no module venv: sudo apt-get install python$version-venv, then run this again."
    fi
done
if [ -z "${TRIED_APT:-}" ] && "$(dirname "$0")/apt-install.sh" python3-venv; then
    TRIED_APT=1 exec "$0"
fi
echo "spark-rowtime needs Python 3.11 or later. $problem" >&2
exit 1
