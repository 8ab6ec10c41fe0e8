#!/usr/bin/env bash
# A thousand healthy jobs: the doctor finds nothing.
HEALTHY_JOBS=${HEALTHY_JOBS:-1000}
. "$(dirname "$0")/../doctor/slow_healthy.t"
