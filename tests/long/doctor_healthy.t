#!/usr/bin/env bash
# A thousand jobs in which nothing is wrong: the doctor accuses nobody.
HEALTHY_JOBS=${HEALTHY_JOBS:-1000}
. "$(dirname "$0")/../doctor/slow_healthy.t"
