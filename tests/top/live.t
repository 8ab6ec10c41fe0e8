#!/usr/bin/env bash
# A job in full swing on screens of four sizes: what is shown, what keys do, what a new size does.
. "$(dirname "$0")/top.sh"

top_needs
top_job --nodes 2 --gpus 2 -w tp-pp --seconds 600s
top_run live.mjs
