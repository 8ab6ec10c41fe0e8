#!/usr/bin/env bash
# However it ends or stops, the terminal is as it was; it comes back after ^Z and SIGSTOP.
. "$(dirname "$0")/top.sh"

top_needs
top_job --gpus 2 -w ddp --seconds 600s
top_run signals.mjs
