#!/usr/bin/env bash
# on-spark.sh VERSION COMMAND...: runs a command with the Python of .venv and another PySpark, which is installed in
# .venv/sparks first, with the extension's jar for it, and the archive of its classes for tests. For example:
#     scripts/on-spark.sh 4.0 .venv/bin/python -m pytest -m smoke tests
set -euo pipefail
cd "$(dirname "$0")/.."
pins=requirements/spark-$1.txt folder=.venv/sparks/$1
shift
mkdir -p .venv/sparks
exec 9>.venv/sparks/lock # two jobs of make test-long may ask for the same one; macOS has no command flock
.venv/bin/python -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)'
if ! cmp -s "$pins" "$folder/pins.txt"; then
    rm -rf "$folder"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --target "$folder" \
        --require-hashes -r "$pins"
    cp "$pins" "$folder/pins.txt"
fi
unset SPARK_HOME # it is that of .venv, where a test calls this
export PYTHONPATH=$PWD/$folder${PYTHONPATH:+:$PYTHONPATH}
.venv/bin/python java-shim/build.py >/dev/null
[ -e "$folder/spark-classes.jsa" ] || .venv/bin/python -m tests.classarchive
exec 9>&-
exec "$@"
