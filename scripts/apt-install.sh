#!/usr/bin/env bash
# apt-install.sh PACKAGE...: installs Debian's packages where it may, as root, within some minutes; otherwise it fails.
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || exit 1
echo "installing $*, a minute or two" >&2
export DEBIAN_FRONTEND=noninteractive
{ timeout 120 apt-get update -qq && timeout 300 apt-get install -y -qq --no-install-recommends "$@"; } >/dev/null 2>&1
