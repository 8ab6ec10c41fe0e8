#!/usr/bin/env bash
# Every system call of the plugin is refused, each with four errors, and each single one alone.
SANDBOX_EACH=1 SANDBOX_ERRORS="EPERM ENOSYS EACCES ENOMEM" exec "$(dirname "$0")/../process/sandbox.t"
