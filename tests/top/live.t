#!/usr/bin/env bash
# A running job on screens of four sizes: contents, keys, resizing.
. "$(dirname "$0")/top.sh"

top_needs
top_job --nodes 2 --gpus 2 -w tp-pp --seconds 600s
top_run live.mjs
