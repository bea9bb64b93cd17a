#!/usr/bin/env bash
# Renews requirements/*.txt: the newest versions that pyproject.toml allows, for all Pythons and systems, with the hashes
# of their files. make installs these and nothing else. It needs the network, and some minutes.
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
# pyspark alone differs between the two environments, so it has files of its own.
pyspark() { awk '/^pyspark==/ { inside = 1; print; next } /^[^ ]/ { inside = 0 } inside' "$1"; }
rest() { awk '/^pyspark==/ { inside = 1; next } /^[^ ]/ { inside = 0 } !inside' "$1"; }
oldest=$(sed -nE 's/^    "pyspark\[sql\]>=([0-9.]+),.*/\1/p' pyproject.toml)
resolve "$scratch/newest.txt"
resolve "$scratch/oldest.txt" "pyspark[sql]==$oldest"
diff <(rest "$scratch/newest.txt") <(rest "$scratch/oldest.txt") >&2 || {
    echo "PySpark's versions need different versions of these: requirements/ must have two whole files." >&2
    exit 1
}
mkdir -p requirements
{ echo "# Made by scripts/renew-requirements.sh: what development and CI install besides PySpark."; rest "$scratch/newest.txt"; } >requirements/dev.txt
for name in newest oldest; do
    { echo "# Made by scripts/renew-requirements.sh: the $name PySpark that is supported."; pyspark "$scratch/$name.txt"; } >"requirements/$name.txt"
done
