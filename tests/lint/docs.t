#!/usr/bin/env bash
. "$(dirname "$0")/../tap.sh"

expect_ok "documents match the code" scripts/check-docs

tree=$tap_scratch/tree
fresh() {
	rm -rf "$tree"
	printf 'check: ## all\n\ttrue\n' | sample tree/Makefile >/dev/null
	echo 'x = getenv("RINGSIDE_MODE");' | sample tree/src/plugin/settings.c >/dev/null
	echo '| `RINGSIDE_MODE` | what |' | sample tree/docs/SETTINGS.md >/dev/null
	echo '{ "ls", cmd_ls, "list" },' | sample tree/src/cmds/main.c >/dev/null
}
refused() { # sentence pattern file text
	fresh
	sample "tree/$3" <<<"$4" >/dev/null
	expect_complaint "$1" "$2" scripts/check-docs "$tree"
}
taken() { # sentence file text
	fresh
	sample "tree/$2" <<<"$3" >/dev/null
	expect_ok "$1" scripts/check-docs "$tree"
}

refused "a dead link is found" "links to docs/NOWHERE.md" README.md 'See [there](docs/NOWHERE.md).'
refused "a dead anchor is found" "no heading 'gone'" README.md 'See [there](docs/SETTINGS.md#gone).'
refused "a page that the index leaves out is found" "does not link to SETTINGS.md" docs/INDEX.md 'See [nothing](../Makefile).'
refused "an unknown target is found" 'mentions `make chek`' README.md 'Run `make chek`.'
refused "an unknown target in a block is found" 'mentions `make chek`' README.md $'```\n$ make chek\n```'
refused "an unknown command is found" 'mentions `ringside lls`' README.md 'Run `ringside lls`.'
refused "a file that is gone is found" "mentions src/gone.c" docs/HACKING.md 'Open `src/gone.c`.'
refused "a test that is gone is found" "mentions tests/gone.t" docs/THREATS.md $'## Files\n\n- Safe (`tests/gone.t`).'
refused "a promise without a test is found" "no test is named for 'Also safe" docs/THREATS.md \
	$'## Files\n\n- Safe (`tests/lint/docs.t`).\n- Also safe.\n\n## Others\n\n(`tests/lint/docs.t`).'
refused "so is one whose parentheses name no test" "no test is named for 'Safe" docs/THREATS.md $'- Safe (`Makefile`, `scripts/x`).'
refused "a row of a table without a test is found" "no test is named for 'you | nothing" docs/THREATS.md \
	$'| who | may |\n|---|---|\n| I (`fuzz/x.c`) | all |\n| you | nothing |'
refused "a sentence that does not introduce the table does not count" "no test is named for 'you" docs/THREATS.md \
	$'Safe (`tests/x.t`).\n\n| who |\n|---|\n| you |'
refused "an undescribed setting is found" "does not describe RINGSIDE_NEW" \
	src/plugin/more.c 'getenv("RINGSIDE_NEW")'
refused "a described setting that is gone is found" "describes RINGSIDE_OLD" \
	docs/SETTINGS.md '`RINGSIDE_MODE` and `RINGSIDE_OLD`'
refused "a comment with a broken reference is found" "refers to docs/GONE.md" \
	src/common/x.h '/* see docs/GONE.md */'
refused "a page that the program prints and that is gone is found" "prints GONE.md" \
	src/doctor/x.c 'text_copy(page, sizeof(page), "GONE.md#why");'
refused "and a heading of it" "prints SETTINGS.md#gone" src/doctor/x.c 'text_copy(page, sizeof(page), "SETTINGS.md#gone");'
refused "a decision out of order is found" "the next decision must have number 0001" \
	docs/decisions/0003-x.md $'## Needs\n## Choices\n## Decision'
refused "a decision without needs is found" "no section 'Needs'" \
	docs/decisions/0001-x.md $'## Choices\n## Decision'
refused "a dead anchor is named" "links to docs/SETTINGS.md#gone," README.md 'See [there](docs/SETTINGS.md#gone).'
taken "a decision may name a page that was merged into another one" docs/decisions/0001-x.md \
	$'## Needs\nSee [there](../MERGED.md).\n## Choices\n## Decision'
taken "links in code blocks are not followed" README.md $'```\nSee [there](docs/NOWHERE.md).\n```'
taken "one test for all rows stands before the table" docs/THREATS.md $'Safe (`fuzz/N.c`):\n\n| who |\n|---|\n| you |'
taken "a good page is fine" README.md \
	$'# A b\nSee [settings](docs/SETTINGS.md), [here](#a-b), `make check`, `ringside ls -l`, `src/plugin/settings.c`.'
tap_done
