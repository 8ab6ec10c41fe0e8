#!/usr/bin/env bash
# Completions in the real shells. bash and fish print their suggestions; zsh runs in a pseudo-terminal.
. "$(dirname "$0")/cli.sh"

for shell in bash zsh fish; do
	"$ringside" completions $shell >"$tap_scratch/$shell" || exit 1
done
expect_refusal "another shell" 2 "no shell: use bash, zsh or fish" "$ringside" completions csh
expect_same "it is not listed" "$("$ringside" help | grep -c completions)" 0

names() { # of a command's options, from its help
	"$ringside" "$@" --help | grep -oE '^ +(-[a-zA-Z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort
}
mkdir "$tap_scratch/here"
touch "$tap_scratch/here/trace.ringside"
every="ls ps run env record report doctor diff baseline dump trace export import bundle verify agent hub top sim model bench
bench,health bench,crossover bench,profilers"

# ---- bash: the function, without the package bash-completion ------------------------------------

bash_offers() { # words..., the last one incomplete
	bash --norc -c 'source "$1"; shift; cd "$1"; shift
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _ringside; printf "%s\n" "${COMPREPLY[@]}"' - \
		"$tap_scratch/bash" "$tap_scratch/here" "$@" | sort -u | grep .
}
expect_ok "bash uses it for ringside" bash --norc -c 'source "$1" && complete -p ringside | grep -q _ringside' - "$tap_scratch/bash"
expect_same "bash: commands" "$(bash_offers ringside d)" "diff
doctor
dump"
for command in $every; do
	IFS=, read -ra words <<<"$command"
	expect_same "bash: options of ${words[*]}" "$(bash_offers ringside "${words[@]}" --)" "$(names "${words[@]}")"
done
expect_same "bash: values" "$(bash_offers ringside report --color a)" "always
auto"
expect_same "bash: files" "$(bash_offers ringside report t)" trace.ringside
expect_same "bash: files of an option" "$(bash_offers ringside report --html t)" trace.ringside
expect_same "bash: nothing for a number" "$(bash_offers ringside report --rank t)" ""
expect_same "bash: second words" "$(bash_offers ringside bench h) $(bash_offers ringside baseline sh) $(bash_offers ringside help vers)" \
	"health show version"

# ---- fish ----------------------------------------------------------------------------------------

if command -v fish >/dev/null; then
	fish_offers() { # line
		HOME=$tap_scratch XDG_CONFIG_HOME=$tap_scratch fish --no-config -c \
			'source $argv[1]; cd $argv[2]; complete -C $argv[3]' "$tap_scratch/fish" "$tap_scratch/here" "$1" | cut -f 1 | sort -u
	}
	expect_same "fish: commands" "$(fish_offers 'ringside d')" "diff
doctor
dump"
	for command in $every; do
		IFS=, read -ra words <<<"$command"
		expect_same "fish: options of ${words[*]}" "$(fish_offers "ringside ${words[*]} --")" "$(names "${words[@]}")"
	done
	expect_same "fish: values" "$(fish_offers 'ringside report --color a')" "always
auto"
	expect_same "fish: files" "$(fish_offers 'ringside report t')" trace.ringside
	expect_same "fish: files of an option" "$(fish_offers 'ringside report --html t')" trace.ringside
	expect_same "fish: second words" "$(fish_offers 'ringside bench h') $(fish_offers 'ringside baseline sh')" "health show"
else
	tap_line ok "fish # SKIP there is no fish" ""
fi

# ---- zsh: arguments of compadd -------------------------------------------------------------------

if command -v zsh >/dev/null; then
	cat >"$tap_scratch/drive.zsh" <<'ZSH'
# Completes a line in a pseudo-terminal, with a compadd that logs its arguments.
zmodload zsh/zpty
zpty shell "TERM=dumb zsh -f -i"
# What is typed before the line editor is ready must not be erased by the terminal.
zpty -w shell "stty kill undef; PS1= PROMPT_EOL_MARK= ; unsetopt zle_bracketed_paste beep; cd ${(q)3}; autoload -U compinit; compinit -u -D; source ${(q)1}"
zpty -w shell 'compadd() { local -a got; builtin compadd -A got "$@"; (( $#got )) && print -rl -- $got >>'${(q)4}'; builtin compadd "$@" }'
zpty -w shell "bindkey '^I' complete-word; print RE''ADY"
zpty -r -m shell got '*READY*'
zpty -w -n shell "$2"$'\t'
zpty -w -n shell $'\C-u'
zpty -w shell "print DO''NE"
zpty -r -m shell got '*DONE*'
zpty -d shell
ZSH
	zsh_offers() { # line
		rm -f "$tap_scratch/offers"
		HOME=$tap_scratch timeout 120 zsh -f "$tap_scratch/drive.zsh" "$tap_scratch/zsh" "$1" "$tap_scratch/here" "$tap_scratch/offers" </dev/null >/dev/null 2>&1
		sort -u "$tap_scratch/offers" 2>/dev/null | sed 's/=$//' | sort -u
	}
	expect_ok "zsh reads it" zsh -fn "$tap_scratch/zsh"
	expect_same "zsh: commands" "$(zsh_offers 'ringside d')" "diff
doctor
dump"
	for command in ls report doctor bench bench,health sim agent; do
		IFS=, read -ra words <<<"$command"
		expect_same "zsh: options of ${words[*]}" "$(zsh_offers "ringside ${words[*]} --" | grep '^--')" "$(names "${words[@]}")"
	done
	expect_same "zsh: values" "$(zsh_offers 'ringside report --color a')" "always
auto"
	expect_same "zsh: files" "$(zsh_offers 'ringside report t')" trace.ringside
else
	tap_line ok "zsh # SKIP there is no zsh" ""
fi
tap_done
