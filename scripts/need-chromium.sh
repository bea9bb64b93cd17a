#!/usr/bin/env bash
# Installs Debian's Chromium for the tests of the page, where it may. Without a browser these tests are skipped.
set -euo pipefail
command -v chromium >/dev/null 2>&1 && exit 0
"$(dirname "$0")/apt-install.sh" chromium fonts-dejavu-core || true
command -v chromium >/dev/null 2>&1 && exit 0
echo "There is no Chromium: the tests of the page are skipped. For them: sudo apt-get install chromium." >&2
