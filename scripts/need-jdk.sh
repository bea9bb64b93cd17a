#!/usr/bin/env bash
# Makes sure that there is a JDK 17 or later: installs Debian's where it may, else says in one line what to do.
set -euo pipefail
have() {
    command -v javac >/dev/null 2>&1 || return 1
    local major
    major=$(javac -version 2>&1 | sed -E 's/^javac ([0-9]+).*/\1/')
    [ "${major:-0}" -ge 17 ]
}
have && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    apt-get update -qq && apt-get install -y -qq openjdk-17-jdk-headless >/dev/null
    have && exit 0
fi
echo "spark-rowtime needs a JDK 17 or later: sudo apt-get install openjdk-17-jdk-headless (or brew install openjdk@17), then run this again." >&2
exit 1
