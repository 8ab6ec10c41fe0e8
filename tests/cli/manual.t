#!/usr/bin/env bash
# -h and the manual agree: synopsis, summary, every option with its text, every example.
. "$(dirname "$0")/cli.sh"

plain() { # of roff: text without fonts and escapes
	sed -e 's/\\f[BIR]//g' -e 's/\\-/-/g' -e "s/\\\\(aq/'/g" -e 's/\\e/\\/g' -e 's/^\.B[RI]* //' "$1"
}
# One line per option: "-j, --json: write JSON".
help_options() {
	awk '/^options:/ { on = 1; next } /^$/ { on = 0 }
		!on { next }
		/^ +-/ {
			if (line) print line
			match($0, /^ +(-[a-zA-Z], )?--[a-z-]+( [A-Z]+)?/)
			line = substr($0, 1, RLENGTH); rest = substr($0, RLENGTH + 1)
			sub(/^ +/, "", line); sub(/^ +/, "", rest)
			line = line ":" (rest ? " " rest : "")
			next
		}
		{ sub(/^ +/, ""); line = line " " $0 }
		END { if (line) print line }'
}
manual_options() { # file
	plain "$1" | awk '/^\.SH/ { on = $2 == "OPTIONS"; if (line) print line; line = ""; next }
		!on { next }
		/^\.TP/ { if (line) print line; line = ""; next }
		{ line = line (line ? (line ~ /:/ ? " " : ": ") : "") $0 }'
}

"$ringside" help >"$tap_scratch/overview"
commands=$(sed -n '/^commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p' "$tap_scratch/overview")
for command in $commands; do
	page=man/ringside-$command.1
	case $command in help | version) continue ;; esac
	"$ringside" "$command" -h >"$tap_scratch/help"
	expect_same "options of $command" "$(manual_options "$page")" "$(help_options <"$tap_scratch/help")"
	expect_same "summary of $command" \
		"$(plain "$page" | sed -n "s/^ringside-$command - //p")" \
		"$(sed -n "s/^  $command  *//p" "$tap_scratch/overview")"
	expect_same "synopsis of $command" \
		"$(plain "$page" | sed -n '/^\.SH SYNOPSIS/,/^\.SH DESC/p' | grep -v '^\.' | tr '\n' ' ' | sed 's/ $//')" \
		"$(sed -n 's/^usage: //p' "$tap_scratch/help")"
	missing=$(sed -n '/^examples:/,$s/^  \([^ ]\)/\1/p' "$tap_scratch/help" |
		while IFS= read -r example; do
			plain "$page" | grep -xF -- "$example" >/dev/null || echo "$example"
		done)
	expect_same "examples of $command" "$missing" ""
done
# Subcommands have their own page.
for page in man/ringside-*-*.1; do
	words=$(basename "$page" .1)
	# A command with a hyphen is above.
	! grep -qxF "${words#ringside-}" <<<"$commands" || continue
	read -ra words <<<"${words//-/ }"
	"$ringside" "${words[@]:1}" -h >"$tap_scratch/help"
	expect_same "options of ${words[*]}" "$(manual_options "$page")" "$(help_options <"$tap_scratch/help")"
	expect_same "synopsis of ${words[*]}" \
		"$(plain "$page" | sed -n '/^\.SH SYNOPSIS/,/^\.SH DESC/p' | grep -v '^\.' | tr '\n' ' ' | sed 's/ $//')" \
		"$(sed -n 's/^usage: //p' "$tap_scratch/help")"
	missing=$(sed -n '/^examples:/,$s/^  \([^ ]\)/\1/p' "$tap_scratch/help" |
		while IFS= read -r example; do
			plain "$page" | grep -xF -- "$example" >/dev/null || echo "$example"
		done)
	expect_same "examples of ${words[*]}" "$missing" ""
done
for command in $commands; do
	expect_same "ringside(1) knows $command" \
		"$(plain man/ringside.1 | sed -n '/^\.SH COMMANDS/,/^\.SH PATH/p' | grep -A1 -E "^ringside[- ]$command( \(1\))?\$" | tail -n 1)" \
		"$(sed -n "s/^  $command  *//p" "$tap_scratch/overview")"
done

if command -v groff >/dev/null; then
	for page in man/*.1; do
		expect_same "groff accepts $page without warnings" "$(groff -man -Tascii -ww "$page" 2>&1 >/dev/null)" ""
	done
fi
tap_done
