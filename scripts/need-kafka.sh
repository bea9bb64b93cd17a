#!/usr/bin/env bash
# Fetches the jars of Kafka's broker and of Spark's Kafka source with Maven, which it installs where it may. $1: a Python
# with PySpark. Without the jars the tests with Kafka are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v mvn >/dev/null 2>&1 || scripts/apt-install.sh maven || true
limit=$(command -v timeout || true) # macOS has none
PYTHONDONTWRITEBYTECODE=1 ${limit:+"$limit" 600} "$1" -m tests.kafka.jars >/dev/null || true
