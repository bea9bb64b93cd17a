#!/usr/bin/env bash
# Fetches the jars of Kafka's broker and of Spark's Kafka source with Maven, which it installs where it may. $1: a Python
# with PySpark. Without the jars the tests with Kafka are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v mvn >/dev/null 2>&1 && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    export DEBIAN_FRONTEND=noninteractive
    { timeout 120 apt-get update -qq && timeout 300 apt-get install -y -qq --no-install-recommends maven; } >/dev/null 2>&1 || true
fi
limit=$(command -v timeout || true) # macOS has none
PYTHONDONTWRITEBYTECODE=1 ${limit:+"$limit" 600} "$1" -m tests.kafka.jars >/dev/null || true
