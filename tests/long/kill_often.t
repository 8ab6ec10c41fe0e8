#!/usr/bin/env bash
# SIGKILL at a thousand random moments.
KILL_ROUNDS=1000 exec "$(dirname "$0")/../process/kill.t"
