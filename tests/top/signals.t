#!/usr/bin/env bash
# The terminal is restored however top ends or stops; it continues after Ctrl-Z and SIGSTOP.
. "$(dirname "$0")/top.sh"

top_needs
top_job --gpus 2 -w ddp --seconds 600s
top_run signals.mjs
