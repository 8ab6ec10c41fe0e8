#!/usr/bin/env bash
# Every installation command of the README and the guides is run by a test as written, which takes it from there (as_written in
# tests/tap.sh), or is listed with its reason under 'Installation commands not run here' (docs/REAL-NCCL.md).
. "$(dirname "$0")/dist.sh"

list=$(sed -n '/Installation commands not run here/,/^## /p' docs/REAL-NCCL.md | grep -o '`[^`]*`' | tr -d '`' | grep -v '^tests/')
asked=$(grep -rhoE --include='*.t' --exclude=documented.t "(as_written|typed) '[^']+'" tests | sed "s/^[a-z_]* '//; s/'$//" | sort -u)
# Prints those that neither a test asks for nor the list names.
not_run() { # command... in lines
	local command pattern
	while IFS= read -r command; do
		while IFS= read -r pattern; do
			[[ $command =~ $pattern || "sudo $command" =~ $pattern ]] && continue 2
		done <<<"$asked"
		while IFS= read -r pattern; do
			[[ $command == "$pattern"* ]] && continue 2
		done <<<"$list"
		echo "$command"
	done
}
commands=$(scripts/installation-commands)
expect_ok "every page has some" test "$(cut -f 1 <<<"$commands" | sort -u | wc -l)" -eq 5
expect_same "all are run, or listed as not run" "$(cut -f 2 <<<"$commands" | sort -u | not_run)" ""
expect_same "what is listed is in a page" "$(while IFS= read -r command; do
	grep -qF -- "	$command" <<<"$commands" || echo "$command"
done <<<"$list")" ""
expect_same "what tests ask for is in a page" "$(while IFS= read -r pattern; do
	cut -f 2 <<<"$commands" | grep -qE -- "$pattern" || echo "$pattern"
done <<<"$asked")" ""

# The check finds one that is new.
page=$(printf '%s\n' '```' 'apt install ringside   # from a repository' 'ringside ls' '```' 'or `sudo make install prefix=/opt`' | sample page.md)
expect_same "a new command is found" "$(scripts/installation-commands "$page" | cut -f 2 | not_run | xargs)" "apt install ringside sudo make install prefix=/opt"
# No package of another kind: beside them lies the source package, which dnf refuses.
for file in nccl-profiler-ringside ringside ringside-agent ringside-bench ringside-sim; do : >"$tap_scratch/$file-$VERSION-1.x86_64.rpm"; done
: >"$tap_scratch/ringside-slurm-$VERSION-1.src.rpm"
named=$(sed -n 's/^dnf install //p' <<<"$list")
expect_same "the command of dnf names three packages" "$(cd "$tap_scratch" && eval "echo $named" | xargs -n 1 basename | xargs)" \
	"nccl-profiler-ringside-$VERSION-1.x86_64.rpm ringside-$VERSION-1.x86_64.rpm ringside-agent-$VERSION-1.x86_64.rpm"
tap_done
