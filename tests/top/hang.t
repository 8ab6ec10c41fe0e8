#!/usr/bin/env bash
# A rank never arrives: the screen names it and the ranks that wait for it.
. "$(dirname "$0")/top.sh"

top_needs
top_job --nodes 2 --gpus 2 -w ddp --seconds 600s -f never-arrives:rank=2 --at 1s
top_run hang.mjs
