#!/usr/bin/env bash
# Every command in every state: its exit code, and errors of exactly one line. docs/COMMANDS.md explains the codes.
. "$(dirname "$0")/cli.sh"
make_samples

"$ringside" sim --offline -o "$tap_scratch/healthy" --nodes 1 --gpus 4 -w ddp --seconds 30s --seed 1 >/dev/null || exit 1
"$ringside" sim --offline -o "$tap_scratch/hung" --nodes 1 --gpus 4 -w ddp --seconds 30s --seed 1 \
	-f never-arrives:rank=2 --at 5s >/dev/null || exit 1
"$ringside" sim --offline -o "$tap_scratch/slow" --nodes 1 --gpus 4 -w ddp --seconds 30s --seed 1 \
	--nvlink 50 >/dev/null || exit 1
head -c 5000 /dev/urandom >"$tap_scratch/garbage"
mkdir "$tap_scratch/empty"

# Columns: --help, a bad option, nothing recorded on this host (for bench: no CUDA), a missing file, garbage, a
# directory without recordings, a healthy recording, one with trouble (HUNG, LOSSY, SLOW). "-" does not apply.
# PATH is the input, OUT a new file.
table='
command            arguments                  help option nothing missing garbage empty healthy trouble
ls                 PATH                       0    2      3       3       3       3     0       HUNG:0
ps                 PATH                       0    2      3       3       3       3     0       HUNG:0
dump               PATH                       0    2      3       3       3       3     0       HUNG:-
report             PATH                       0    2      3       3       3       3     0       HUNG:0
doctor             PATH                       0    2      3       3       3       3     0       HUNG:1
verify             PATH                       0    2      3       3       3       3     0       LOSSY:1
diff               HEALTHY,PATH               0    2      -       3       3       3     0       SLOW:1
trace              -o,OUT.json,PATH           0    2      3       3       3       3     0       HUNG:0
export             -o,OUT.csv,PATH            0    2      3       3       3       3     0       LOSSY:0
baseline           save,PATH,-o,OUT           0    2      -       3       3       3     0       HUNG:0
bundle             -o,OUT.tar,PATH            0    2      -       3       3       3     0       HUNG:0
import             -o,OUT,PATH                0    2      -       3       3       3     -       -
stacks             -                          0    2      3       -       -       -     -       -
record             --times,1s,PATH            0    2      3       3       3       3     3       HUNG:3
run                -                          0    2      -       -       -       -     -       -
env                -                          0    2      -       -       -       -     -       -
self-check         -                          0    2      -       -       -       -     -       -
top                -                          0    2      -       -       -       -     -       -
agent              -                          0    2      -       -       -       -     -       -
hub                -                          0    2      -       -       -       -     -       -
sim                -                          0    2      -       -       -       -     -       -
bench              -                          0    2      3       -       -       -     -       -
bench,health       -                          0    2      3       -       -       -     -       -
bench,health       --from,PATH                0    2      -       3       3       3     -       -
bench,crossover    -                          0    2      3       -       -       -     -       -
bench,crossover    --from,PATH                0    2      -       3       3       3     -       -
bench,profilers    --from,PATH                0    2      -       3       3       3     -       -
model              allreduce,8G,--ranks,8,--from,PATH 0 2 -      3       3       3     -       -
help               -                          0    -      -       -       -       -     -       -
version            -                          0    2      -       -       -       -     -       -
'

count=0
# Run one cell of the table.
cell() { # command arguments state path want
	local command=$1 arguments=$2 state=$3 path=$4 want=$5 words got out problem=""
	[ "$want" = - ] && return
	count=$((count + 1))
	out=$tap_scratch/out.$count
	arguments=${arguments//PATH/$path}
	arguments=${arguments//HEALTHY/$tap_scratch/healthy}
	arguments=${arguments//OUT/$out}
	[ "$arguments" = - ] && arguments=
	case $state in
	help) arguments=--help ;;
	option) arguments=--no-such-option ;;
	esac
	IFS=, read -ra words <<<"$command,$arguments"
	[ -n "$arguments" ] || IFS=, read -ra words <<<"$command"
	if [ "$state" = nothing ]; then
		# Nobody else's processes, no recordings and no driver.
		unshare -Urpf --mount-proc true 2>/dev/null || return
		RINGSIDE_SHM=$tap_scratch/none RINGSIDE_CUDA=$tap_scratch/none.so \
			unshare -Urpf --mount-proc "$ringside" "${words[@]}" >"$tap_scratch/cell.out" 2>"$tap_scratch/cell.err"
	else
		"$ringside" "${words[@]}" >"$tap_scratch/cell.out" 2>"$tap_scratch/cell.err"
	fi
	got=$?
	[ "$got" = "$want" ] || problem="exit code $got, expected $want"
	if [ "$want" -ge 2 ]; then
		[ "$(wc -l <"$tap_scratch/cell.err")" -eq 1 ] || problem="$problem; not one line on stderr"
		grep -q "^ringside ${command//,/ }: " "$tap_scratch/cell.err" || problem="$problem; no 'ringside COMMAND:'"
	fi
	if [ -n "$problem" ]; then
		tap_line "not ok" "${words[*]:0:2}: $state" "$problem
$(head -n 5 "$tap_scratch/cell.err")"
	else
		tap_line ok "${command//,/ }: $state" ""
	fi
}

while read -r command arguments help option nothing missing garbage empty healthy trouble; do
	case $command in "" | command) continue ;; esac
	cell "$command" "$arguments" help "" "$help"
	cell "$command" "$arguments" option "" "$option"
	cell "$command" "${arguments//PATH/}" nothing "" "$nothing"
	cell "$command" "$arguments" missing "$tap_scratch/nowhere" "$missing"
	cell "$command" "$arguments" garbage "$tap_scratch/garbage" "$garbage"
	cell "$command" "$arguments" empty "$tap_scratch/empty" "$empty"
	cell "$command" "$arguments" healthy "$tap_scratch/healthy" "$healthy"
	case $trouble in
	HUNG:*) cell "$command" "$arguments" trouble "$tap_scratch/hung" "${trouble#*:}" ;;
	SLOW:*) cell "$command" "$arguments" trouble "$tap_scratch/slow" "${trouble#*:}" ;;
	LOSSY:*) cell "$command" "$arguments" trouble "$tap_scratch/lossy" "${trouble#*:}" ;;
	esac
done <<<"$table"

for command in $("$ringside" help | sed -n '/^commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p'); do
	expect_ok "the table has $command" grep -qE "^${command}[ ,]" <<<"$table"
done

expect_refusal "an output that cannot be written" 3 "^ringside ls: cannot write the output: No space left" \
	sh -c '"$0" ls "$1" >/dev/full' "$ringside" "$tap_scratch/healthy"
expect_refusal "a file that cannot be written" 3 "^ringside report: cannot write .*nowhere/x" \
	"$ringside" report "$tap_scratch/healthy" -o "$tap_scratch/nowhere/x"
if [ -x "$BUILD/ringside-fetch" ]; then
	"$ringside" doctor --agents 127.0.0.1:1 --timeout 1s >/dev/null 2>&1
	expect_same "agents that do not answer" $? 3
fi
"$ringside" run -- sh -c 'exit 42'
expect_same "run ends with the exit code of the job" $? 42
"$ringside" run -- "$tap_scratch/nowhere" 2>"$tap_scratch/err"
expect_same "run of a command that is not there" "$? $(wc -l <"$tap_scratch/err")" "127 1"
"$ringside" run -- "$tap_scratch/garbage" 2>"$tap_scratch/err"
expect_same "run of a file that is not executable" "$? $(wc -l <"$tap_scratch/err")" "126 1"
expect_same "trouble beats unreadable files" \
	"$("$ringside" doctor "$tap_scratch/hung" "$tap_scratch/nowhere" >/dev/null 2>&1; echo $?)" 1
expect_same "one unreadable file of two: could not tell" \
	"$("$ringside" report "$tap_scratch/healthy" "$tap_scratch/nowhere" >/dev/null 2>&1; echo $?)" 3

mkdir "$tap_scratch/logs"
echo 'node1:12:34 [0] NCCL INFO NCCL version 2.28.9+cuda12.9' >"$tap_scratch/logs/nccl.log"
for path in logs logs/nccl.log; do
	expect_refusal "doctor: $path of NCCL_DEBUG" 3 "$path: this is NCCL_DEBUG output: use --log\$" "$ringside" doctor "$tap_scratch/$path"
	expect_refusal "report: $path of NCCL_DEBUG" 3 "$path: this is NCCL_DEBUG output: use 'ringside doctor --log'\$" \
		"$ringside" report "$tap_scratch/$path"
done

# The help, the manual and the documentation have the same table.
for code in 0 1 2 3; do
	expect_ok "help has exit code $code" grep -q "^  $code  " <("$ringside" help)
	expect_ok "ringside(1) has exit code $code" grep -qx "\.B $code" man/ringside.1
	expect_ok "docs/COMMANDS.md has exit code $code" grep -q "^| $code | " docs/COMMANDS.md
done
tap_done
