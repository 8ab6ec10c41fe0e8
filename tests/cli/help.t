#!/usr/bin/env bash
. "$(dirname "$0")/cli.sh"

expect_output "help lists the commands" help "$ringside" help
expect_same "-h is the same" "$("$ringside" -h)" "$("$ringside" help)"
expect_same "version says what it is" "$("$ringside" version | cut -d' ' -f1)" ringside
expect_same "--version is the same" "$("$ringside" --version)" "$("$ringside" version)"
for command in run env ls ps stacks record report doctor diff baseline dump trace export import bundle verify self-check agent hub top model bench; do
	expect_output "help of $command" "help-$command" "$ringside" help "$command"
	expect_same "$command -h is help $command" "$("$ringside" "$command" -h)" \
		"$("$ringside" help "$command")"
done
for second in health crossover profilers; do
	expect_output "help of bench $second" "help-bench-$second" "$ringside" bench "$second" -h
	expect_same "help bench $second is the same" "$("$ringside" help bench "$second")" "$("$ringside" bench "$second" -h)"
done

expect_refusal "no command" 2 "no command given" "$ringside"
expect_refusal "an unknown command, near a known one" 2 "unknown command 'vrify', did you mean 'verify'" \
	"$ringside" vrify
expect_refusal "an unknown command" 2 "unknown command 'xylophone'; see" "$ringside" xylophone
expect_refusal "help for an unknown command" 2 "did you mean 'ls'" "$ringside" help sl
expect_refusal "an unknown option, near a known one" 2 "unknown option '--jsno', did you mean '--json'" \
	"$ringside" ls --jsno
expect_refusal "an unknown option" 2 "unknown option '--frobnicate'" "$ringside" ps --frobnicate
expect_refusal "an unknown letter" 2 "unknown option '-x'" "$ringside" dump -x
expect_refusal "a letter in a bundle" 2 "unknown option '-x'" "$ringside" ls -qx
expect_refusal "a letter of nccl-tests" 2 "unknown option '-b': .* -s 1K..1G" "$ringside" bench -b 8 -e 128M
expect_refusal "an option of nccl-tests" 2 "unknown option '--iters': use -n, --calls" "$ringside" bench --iters=20
expect_refusal "an argument too many" 2 "'--json' takes no argument" "$ringside" ls --json=yes
expect_refusal "an argument too few" 2 "'--mode' needs MODE" "$ringside" run --mode
expect_refusal "control bytes do not reach the terminal" 2 "unknown command '\?\[31m'" \
	"$ringside" $'\e[31m'
expect_refusal "a full disk is reported" 3 "cannot write the output: No space left" \
	sh -c '"$0" help >/dev/full' "$ringside"

# A reader that closes the pipe: SIGPIPE ends the command, or, if that is ignored, the write error is not reported.
"$ringside" help 2>"$tap_scratch/err" | true
expect_same "a closed pipe is quiet" "$(cat "$tap_scratch/err")" ""
(
	trap '' PIPE
	"$ringside" help 2>"$tap_scratch/err" | true
)
expect_same "a closed pipe is quiet with SIGPIPE ignored" "$(cat "$tap_scratch/err")" ""

expect_same "help is wrapped to a narrow terminal" \
	"$(COLUMNS=40 "$ringside" ps -h | awk 'length > 60' | wc -l)" 0
tap_done
