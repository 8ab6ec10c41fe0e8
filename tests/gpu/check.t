#!/bin/sh
# For `prove tests/gpu/check.t`; tests/gpu/run prints the TAP.
exec "$(dirname "$0")/run" "$@"
