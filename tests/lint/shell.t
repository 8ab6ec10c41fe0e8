#!/usr/bin/env bash
. "$(dirname "$0")/../tap.sh"

expect_ok "shellcheck is content with all scripts" scripts/check-shell

sample scripts/bad <<'SH' >/dev/null
#!/usr/bin/env bash
rm -rf $1/*
SH
expect_complaint "a careless script is found" "SC2115|SC2086" scripts/check-shell "$tap_scratch"
tap_done
