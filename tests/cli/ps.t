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
alone "nobody records: what to do" ps-nothing env RINGSIDE_SHM="$tap_scratch/none" "$ringside" ps
alone "--dead brings them in" ps-dead env RINGSIDE_SHM="$tap_scratch/shm" "$ringside" ps --dead

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

# A job that hangs, of which there are trace files alone: one rank's sends are on the wire, and all wait for that.
"$ringside" sim --offline --kernel --nodes 2 --gpus 2 -w ddp --iterations 20 -f stuck-send:rank=1 --at 1s \
	-o "$tap_scratch/hang" >/dev/null
offline=$("$ringside" ps --json "$tap_scratch/hang" | json_says 'join " ", sort map {
	my $op = $_; map { "$op->{rank}:$_->{reason}:$_->{peer}" } @{$op->{waits}} }
	grep { $_->{state} eq "running" } @{$_->{operations}}')
expect_same "what hung when traces ended, and what each waited for" "$offline" \
	"0:recv_net:3 1:send_net:2 2:recv_net:1 3:send_gpu:0"
tap_done
