#!/usr/bin/env bash
. "$(dirname "$0")/cli.sh"
make_samples

expect_output "processes of trace files" ls-traces "$ringside" ls "$tap_scratch/traces"
expect_output "a process that was killed" ls-stuck "$ringside" ls "$tap_scratch/stuck"
expect_output "one that ended, without kernel events" ls-ended "$ringside" ls "$tap_scratch/ended"
expect_output "lines only" ls-quiet "$ringside" ls -q "$tap_scratch/ended" "$tap_scratch/traces"
expect_output "on a narrow terminal" ls-narrow env COLUMNS=60 "$ringside" ls "$tap_scratch/ended"
"$ringside" sim --offline -o "$tap_scratch/simulated" --nodes 1 --gpus 2 -w ddp --seconds 1s >/dev/null || exit 1
expect_same "a simulated process never had a region" "$("$ringside" ls "$tap_scratch/simulated" | grep -o 'region: .*' | sort -u)" \
	"region: none, written by a simulation"
mkdir "$tap_scratch/shm"
cp -r "$tap_scratch/stuck" "$tap_scratch/shm/ringside-1000"
alone "no path: the machine's regions" ls-machine env RINGSIDE_SHM="$tap_scratch/shm" "$ringside" ls -q
alone "nothing recorded" ls-nothing env RINGSIDE_SHM="$tap_scratch/none" "$ringside" ls
expect_output "what cannot be read is reported" ls-trouble "$ringside" ls "$tap_scratch/nowhere" /etc/passwd \
	@999999999 "$tap_scratch/ended"
mkdir "$tap_scratch/empty"
expect_refusal "a directory without recordings" 3 "empty: no recordings found" "$ringside" ls "$tap_scratch/empty"

json() { # expression
	"$ringside" ls --json "$tap_scratch/ended" "$tap_scratch/traces" "$tap_scratch/nowhere" 2>/dev/null |
		json_says "$1"
}
expect_same "--json has all processes" "$(json 'join ",", map { $_->{pid} } @{$_->{processes}}')" \
	"999999990,999999991"
expect_same "a region and a trace of one process are one process" \
	"$(json 'join ",", map { defined $_->{region} ? "both" : "trace" } @{$_->{processes}}')" "trace,both"
expect_same "--json has the trouble" "$(json '$_->{troubles}[0]{kind}')" unreadable
mkdir "$tap_scratch/foreign"
most=$(sed -n 's/.*RECORDING_TROUBLES_MAX = \([0-9]*\).*/\1/p' src/recording/recording.h)
(cd "$tap_scratch/foreign" && seq "$((most + 3))" | split -l 1 -a 4)
for command in ls ps verify; do
	expect_same "$command --json says how many troubles it leaves out" \
		"$("$ringside" $command --json "$tap_scratch/foreign" 2>/dev/null | json_says '@{$_->{troubles}} . " " . $_->{troubles_left_out}')" "$most 3"
done
expect_same "--json says why kernel events are off" \
	"$("$ringside" ls -j "$tap_scratch/ended" | json_says '$_->{processes}[0]{kernel_events_reason}')" \
	"/dev/shm has 64 MiB, NCCL wants 40 MiB per communicator"
tap_done
