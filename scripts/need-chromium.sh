#!/usr/bin/env bash
# Installs Debian's Chromium for the tests of the page, where it may. Without a browser these tests are skipped.
set -euo pipefail
command -v chromium >/dev/null 2>&1 && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    export DEBIAN_FRONTEND=noninteractive
    { timeout 120 apt-get update -qq && timeout 300 apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } >/dev/null 2>&1 || true
    command -v chromium >/dev/null 2>&1 && exit 0
fi
echo "There is no Chromium: the tests of the page are skipped. For them: sudo apt-get install chromium." >&2
