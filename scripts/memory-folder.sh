#!/usr/bin/env bash
# Prints a folder for the files of tests: in memory, if 2 GB are free there, otherwise /tmp.
free=$(df -k /dev/shm 2>/dev/null | awk 'END { print $4 + 0 }')
[ "$free" -gt 2000000 ] && echo /dev/shm || echo /tmp
