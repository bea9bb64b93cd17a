#!/usr/bin/env bash
# set-up.sh FOLDER VERSION: a virtual environment with PySpark of this minor version, as 4.3, with all else that
# requirements/ names, and the project, editable.
# What is missing it says in one line. What pip says is in build/logs.
set -uo pipefail
folder=$1 pyspark=$2 log=build/logs/set-up-$2.log needed_mb=3000
cd "$(dirname "$0")/.."
mkdir -p build/logs
fail() {
    echo "$1" >&2
    exit 1
}
scripts/need-jdk.sh || exit 1
python=$(scripts/need-python.sh) || exit 1
free_mb=$(df -Pm . | awk 'END { print $4 }')
[ -x "$folder/bin/python" ] || [ "$free_mb" -ge "$needed_mb" ] ||
    fail "spark-rowtime needs $needed_mb MB for $folder, and $PWD has $free_mb MB free."
echo "setting up $folder: PySpark is 450 MB the first time, a minute at 60 Mbit/s, and is then unpacked for another one"
pip() { "$folder/bin/python" -m pip "$@" --disable-pip-version-check --no-compile >>"$log" 2>&1; }
{
    : >"$log"
    { "$folder/bin/python" -m pip --version || "$python" -m venv "$folder"; } >>"$log" 2>&1 && # or a half of one
        pip install --require-hashes -r "requirements/spark-$pyspark.txt" -r requirements/dev.txt &&
        PYTHONDONTWRITEBYTECODE=1 pip install --no-deps --no-build-isolation -e .
} && exit 0
if grep -qE 'No space left|Errno 28' "$log"; then
    fail "There is no space left for $folder: it needs $needed_mb MB. $PWD has $(df -Pm . | awk 'END { print $4 }') MB free, ${TMPDIR:-/tmp} $(df -Pm "${TMPDIR:-/tmp}" | awk 'END { print $4 }') MB."
elif grep -q CERTIFICATE_VERIFY_FAILED "$log"; then
    fail "pip does not trust the certificate of the package index: see $log. Behind a proxy with certificates of its own, set PIP_CERT to their file."
elif grep -qE 'NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|ProxyError' "$log"; then
    fail "pip cannot reach the package index: see $log. Behind a proxy, set HTTPS_PROXY; with an index of your own, set PIP_INDEX_URL."
elif grep -q 'No matching distribution' "$log"; then
    fail "The package index has no file of a package that requirements/ names for this Python and system, or cannot be reached: see $log. Python 3.11, 3.12 and 3.13 are tried; name one: make PYTHON=/path/to/python3."
elif grep -q 'DO NOT MATCH THE HASHES' "$log"; then
    fail "The package index has other files than requirements/ was made with: see $log. If you trust it, scripts/renew-requirements.sh."
fi
tail -n 15 "$log" >&2
fail "setting up $folder has failed: see $log."
