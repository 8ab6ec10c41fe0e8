#!/usr/bin/env bash
# A rank that never comes: the screen says so, in words, and who waits for it.
. "$(dirname "$0")/top.sh"

top_needs
top_job --nodes 2 --gpus 2 -w ddp --seconds 600s -f never-arrives:rank=2 --at 1s
top_run hang.mjs
