#!/usr/bin/env bash
# One word for one thing: nothing in the tree uses a word that the glossary of docs/HACKING.md replaces.
. "$(dirname "$0")/../tap.sh"

expect_ok "the tree keeps to the glossary" scripts/check-words

# check-words reads what git tracks, so planted words need a repository.
tree=$tap_scratch/tree
git init -q "$tree"
plant() { # file text
	mkdir -p "$tree/$(dirname "$1")"
	printf '%s\n' "$2" >"$tree/$1"
	git -C "$tree" add "$1"
}
check() { # file
	(cd "$tree" && "$OLDPWD/scripts/check-words" "$1")
}
finds() { # sentence pattern file text
	plant "$3" "$4"
	expect_complaint "$1" "$2" check "$3"
}
accepts() { # sentence file text
	plant "$2" "$3"
	expect_ok "$1" check "$2"
}

finds "a word in a document" "page.md:1: 'stands still': use hung" docs/page.md 'The job stands still.'
finds "a word in a comment" "one.c:1: 'whom': use name the rank" src/one.c '/* The rank for whom others wait. */'
finds "a word in a string" "three.c:1: 'told': use reported" src/three.c 'puts("the user was told");'
finds "a phrase broken across lines of a comment" "five.c:1: 'in sum': use in total" src/five.c '/* The time in
 * sum. */'
finds "a number before a percent sign" "four.c:1: .* no space before %" src/four.c 'puts("27 % of the time");'
finds "a word in a script" "five.t:1: .*use scan, refresh" tests/five.t '# between two looks'
finds "two tools for one thing" "six.c:1: 'ibstatus': use ibstat" src/six.c 'puts("$ ibstatus");'
accepts "plain words" docs/plain.md 'Rank 5 has not called AllReduce #3726 of world; 7 ranks wait (27% of collective time).'
accepts "a name in backticks" docs/name.md 'The glossary replaces `stands still`.'
accepts "code" src/code.c 'int told = 1;'
accepts "a decision, which is never edited" docs/decisions/0001-x.md 'The job stands still.'
tap_done
