#!/usr/bin/env bash
# Makes sure that there is a JDK 17 or later: installs Debian's where it may, else says in one line what to do.
set -uo pipefail
major() { sed -nE 's/^[a-z]+ (version )?"?(1\.)?([0-9]+).*/\3/p' | head -n 1; }
found=""
have() {
    local java=${JAVA_HOME:+$JAVA_HOME/bin/}java compiler runtime # Spark starts this one
    compiler=$(javac -version 2>&1 | major) runtime=$("$java" -version 2>&1 | major)
    found=${runtime:+" There is $java $runtime, but no javac."}
    [ -z "$compiler" ] || found=" There is javac $compiler."
    [ "${compiler:-0}" -ge 17 ] || return 1
    found=" $java is ${runtime:-not there, or does not start}${JAVA_HOME:+, by JAVA_HOME}."
    [ "${runtime:-0}" -ge 17 ]
}
have && exit 0
for version in 17 21; do # newer systems have the second alone
    [ -z "${JAVA_HOME:-}" ] && "$(dirname "$0")/apt-install.sh" "openjdk-$version-jdk-headless" && have && exit 0
done
echo "spark-rowtime needs a JDK 17 or later.$found sudo apt-get install openjdk-17-jdk-headless (openjdk-21-jdk-headless where that is not there, brew install openjdk@17), then run this again." >&2
exit 1
