#!/usr/bin/env bash
. "$(dirname "$0")/../tap.sh"

expect_ok "shellcheck is content with all scripts" scripts/check-shell

sample scripts/bad <<'SH' >/dev/null
#!/usr/bin/env bash
rm -rf $1/*
SH
expect_complaint "a careless script is found" "SC2115|SC2086" scripts/check-shell "$tap_scratch"

# Scripts and what they source: each is checked, and neither by itself.
rm "$tap_scratch/scripts/bad"
sample tests/shared.sh <<'SH' >/dev/null
# shellcheck shell=bash disable=SC2034,SC2154
given=1
greet() { echo "$1" "$chosen"; }
SH
sample tests/good.t <<'SH' >/dev/null
#!/usr/bin/env bash
. "$(dirname "$0")/shared.sh"
chosen=$given
greet "you"
SH
cp .shellcheckrc "$tap_scratch"
expect_ok "a script has the variables of what it sources, and sets others for it" scripts/check-shell "$tap_scratch"
sample tests/bad.t <<'SH' >/dev/null
#!/usr/bin/env bash
. "$(dirname "$0")/shared.sh"
unread=1
echo "$missing"
SH
expect_complaint "a variable that nobody sets is found" "SC2154.*missing" scripts/check-shell "$tap_scratch"
expect_complaint "and one that nobody reads" "SC2034.*unread" scripts/check-shell "$tap_scratch"
rm "$tap_scratch/tests/bad.t"
echo 'rm -rf $1/*' >>"$tap_scratch/tests/shared.sh"
expect_complaint "what is sourced is checked as well" "SC2115|SC2086" scripts/check-shell "$tap_scratch"
tap_done
