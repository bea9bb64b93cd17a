#!/usr/bin/env bash
# Prints a Python 3.11 or later that can make virtual environments; else says in one line what to do.
set -euo pipefail
for python in "${PYTHON:-python3}" python3.13 python3.12 python3.11; do
    if "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        echo "$python"
        exit 0
    fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 && [ -z "${TRIED_APT:-}" ]; then
    { apt-get update -qq && apt-get install -y -qq python3-venv; } >/dev/null 2>&1 || true
    TRIED_APT=1 exec "$0"
fi
echo "spark-rowtime needs Python 3.11 or later with venv: sudo apt-get install python3-venv, then run this again." >&2
exit 1
