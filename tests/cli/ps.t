#!/usr/bin/env bash
. "$(dirname "$0")/cli.sh"
make_samples

expect_output "what a killed process had in flight, and what it waited for" ps-stuck "$ringside" ps "$tap_scratch/stuck"
expect_output "on a narrow terminal" ps-narrow env COLUMNS=72 "$ringside" ps "$tap_scratch/stuck"
expect_output "nothing in flight" ps-ended "$ringside" ps "$tap_scratch/ended"
expect_output "data moved for other processes" ps-carrier "$ringside" ps "$tap_scratch/carrier"
expect_same "--json has that, too" \
	"$("$ringside" ps -j "$tap_scratch/carrier" | json_says '$_->{foreign}[0]{waits}[0]{reason}')" send_peer
mkdir "$tap_scratch/shm"
cp -r "$tap_scratch/stuck" "$tap_scratch/shm/ringside-1000"
alone "no path: dead processes are left out" ps-machine env RINGSIDE_SHM="$tap_scratch/shm" "$ringside" ps
alone "no recorded process: an error with advice" ps-nothing env RINGSIDE_SHM="$tap_scratch/none" "$ringside" ps
alone "--dead includes them" ps-dead env RINGSIDE_SHM="$tap_scratch/shm" "$ringside" ps --dead

json() { # expression
	"$ringside" ps --json "$tap_scratch/stuck" | json_says "$1"
}
expect_same "--json has the operations" \
	"$(json 'join ",", map { "$_->{number} $_->{state}" } @{$_->{operations}}')" "6 running,7 launched,8 issued"
expect_same "--json has the waits, the longest first" \
	"$(json 'join ", ", map { "$_->{reason} $_->{peer} " . join("+", @{$_->{channels}}) . " " . $_->{waiting_ns} / 1e9 }
		@{$_->{operations}[0]{waits}}')" \
	"recv_net 1 0+1 20, send_gpu 1 0 18, send_queued 1 1 17.000001"
expect_same "--json has steps" "$(json 'join "/", @{$_->{operations}[0]{waits}[0]}{"steps_done", "steps"}')" 6/32

# A hung job with trace files only: sends of one rank are stuck on the wire, and all ranks wait for them.
"$ringside" sim --offline --kernel --nodes 2 --gpus 2 -w ddp --iterations 20 -f stuck-send:rank=1 --at 1s \
	-o "$tap_scratch/hang" >/dev/null
offline=$("$ringside" ps --json "$tap_scratch/hang" | json_says 'join " ", sort map {
	my $op = $_; map { "$op->{rank}:$_->{reason}:$_->{peer}" } @{$op->{waits}} }
	grep { $_->{state} eq "running" } @{$_->{operations}}')
expect_same "what hung when traces ended, and what each waited for" "$offline" \
	"0:recv_net:3 1:send_net:2 2:recv_net:1 3:send_gpu:0"

# Within a node and without kernel events NCCL never reports an end: a hang shows only because calls stop.
play() { # name option... : until the last calls of both ranks are listed; its --json lies in $tap_scratch/name
	local name=$1
	shift
	mkdir "$tap_scratch/$name.shm"
	RINGSIDE_SHM=$tap_scratch/$name.shm "$ringside" sim --nodes 1 --gpus 2 -w ddp --no-kernel --seconds 120s -m flight "$@" \
		>/dev/null 2>&1 &
	sim=$!
	for _ in $(seq 600); do
		"$ringside" ps --json "$tap_scratch/$name.shm" >"$tap_scratch/$name" 2>/dev/null
		[ "$(json_says 'scalar grep { $_->{is_last_call} } @{$_->{operations}}' "$tap_scratch/$name")" = 2 ] && break
		sleep 0.1
	done
	"$ringside" ps "$tap_scratch/$name.shm" >"$tap_scratch/$name.text" 2>"$tap_scratch/$name.said"
	kill "$sim"
	wait "$sim" 2>/dev/null
}
trap 'kill "$sim" 2>/dev/null; rm -rf "$tap_scratch"' EXIT
play kernel -f gpu-stuck:rank=1 --at 1s
expect_same "an untimed hang is listed without --all: the last call of each rank" \
	"$(json_says 'my @ops = @{$_->{operations}}; join " ", scalar @ops, $ops[0]{number} == $ops[1]{number} ? "same" : "differ",
		map { $_->{is_end_visible} ? "visible" : "unseen" } @ops' "$tap_scratch/kernel")" "2 same unseen unseen"
expect_same "one row for both says that they are not timed" \
	"$(grep -c ' 2 ranks ' "$tap_scratch/kernel.text") $(grep -c '      not timed: it hangs, or it is over' "$tap_scratch/kernel.text")" "1 1"
expect_same "the calls before are counted" \
	"$(grep -c 'more operations are not timed, .* --all lists them' "$tap_scratch/kernel.said")" 1
play absent -f never-arrives:rank=1 --at 1s
expect_same "a collective that a rank has not called says so" \
	"$(json_says 'join " ", map { "$_->{rank}:$_->{ranks_absent}" } sort { $a->{rank} <=> $b->{rank} } @{$_->{operations}}' \
		"$tap_scratch/absent")" "0:1 1:0"
expect_same "in words" "$(grep -c 'not timed; 1 rank of its communicator here has not called it' "$tap_scratch/absent.text")" 1
tap_done
