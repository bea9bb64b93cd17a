#!/usr/bin/env bash
# Renews requirements/*.txt: the newest versions that pyproject.toml allows, for all Pythons and systems, with the hashes
# of their files. make installs these, and the extra of the benchmarks for them alone. It needs the network, and some minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$(scripts/need-python.sh)" -m venv "$scratch/venv"
"$scratch/venv/bin/python" -m pip install --quiet --disable-pip-version-check uv
unset PIP_FIND_LINKS PIP_INDEX_URL UV_FIND_LINKS UV_INDEX_URL
resolve() { # FILE REQUIREMENT...: what a development environment needs, with these requirements
    local file=$1
    shift
    printf '%s\n' hatchling editables "$@" >"$scratch/more.in"
    "$scratch/venv/bin/uv" pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header \
        --no-annotate --extra dev --no-emit-package spark-rowtime pyproject.toml "$scratch/more.in" -o "$file"
}
# pyspark alone differs between Spark's minor versions, so it has files of its own.
pyspark() { awk '/^pyspark==/ { inside = 1; print; next } /^[^ ]/ { inside = 0 } inside' "$1"; }
rest() { awk '/^pyspark==/ { inside = 1; next } /^[^ ]/ { inside = 0 } !inside' "$1"; }
mkdir -p requirements
versions=$(sed -nE 's/^VERSIONS = \((.*)\)/\1/p' spark_rowtime/spark/jars.py | tr -d '",')
for version in $versions; do
    resolve "$scratch/$version.txt" "pyspark[sql]==$version.*"
    { echo "# Made by scripts/renew-requirements.sh: the PySpark for the tests on Spark $version."; pyspark "$scratch/$version.txt"; } >"requirements/spark-$version.txt"
    diff <(rest "$scratch/$version.txt") <(rest "$scratch/${versions%% *}.txt") >&2 || {
        echo "PySpark's versions need different versions of these: requirements/ must have a whole file for each." >&2
        exit 1
    }
done
{ echo "# Made by scripts/renew-requirements.sh: what development and CI install besides PySpark."; rest "$scratch/$version.txt"; } >requirements/dev.txt
