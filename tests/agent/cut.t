#!/usr/bin/env bash
# Regions are cut and made whole again while the agent, the live screen and all reading commands read them: nothing crashes
# or hangs, and the intact region of another process is shown all the time. CUT_ROUNDS: how often.
. "$(dirname "$0")/agent.sh"
command -v python3 >/dev/null || tap_skip_all "python3 is not installed"
ringside=$BUILD/ringside

start_job ops=100000 comms=3 pace=500 nodes=2
until_ok compgen -G "$shm/ringside-*/*.region"
place=$(dirname "$(compgen -G "$shm/ringside-*/*.region")")
intact=$job_pid
start_job ops=3000 comms=2 nodes=2
until_ok eval "compgen -G '$place/$job_pid-*.region'"
until_ok grep -q issued "$tap_scratch/job"
# A copy of a live process's region: cutting its own would harm that job.
victim=$(compgen -G "$place/$job_pid-*.region")
cp "$victim" "$tap_scratch/whole"
rm "$victim"
cat >"$tap_scratch/cut.py" <<'EOF'
import os, random, sys
whole, path, done = open(sys.argv[1], "rb").read(), sys.argv[2], sys.argv[3]
random.seed(7)
cuts = 0
while os.getppid() == int(sys.argv[4]) and not os.path.exists(done):
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    at = random.choice((0, 100, 4096, random.randrange(len(whole)), random.randrange(65536)))
    os.ftruncate(fd, at)
    os.pwrite(fd, whole[at:], at)
    os.close(fd)
    cuts += 1
print(cuts)
EOF
start_agent --interval 1s
python3 "$tap_scratch/cut.py" "$tap_scratch/whole" "$victim" "$tap_scratch/done" $$ >"$tap_scratch/cuts" &
cutter=$!
started+=("$cutter")

faults=
served=0
rounds=${CUT_ROUNDS:-8}
for ((i = 0; i < rounds; i++)); do
	for command in ls ps verify report dump doctor "export --format jsonl -o -" "top --once --interval 200ms --directory"; do
		# shellcheck disable=SC2086
		timeout 60 "$ringside" $command "$shm" >"$tap_scratch/out" 2>"$tap_scratch/err"
		code=$?
		case $code in 0 | 1 | 3) ;; *) faults+="$command: $code $(head -n 1 "$tap_scratch/err")"$'\n' ;; esac
		case $command in ls | top*) grep -q "$intact\|alive" "$tap_scratch/out" || faults+="$command without the intact one"$'\n' ;; esac
	done
	answers 200 /metrics && served=$((served + 1))
done
expect_same "no command crashes, hangs or loses the intact region" "$faults" ""
expect_same "the agent answers each time" "$served" "$rounds"
shows_pid() { grep -q "\"pid\":$1\b" <<<"$(fetch /api/v1/now)"; }
expect_ok "and shows the intact region" shows_pid "$intact"
: >"$tap_scratch/done"
wait "$cutter"
expect_ok "it was cut hundreds of times ($(cat "$tap_scratch/cuts"))" test "$(cat "$tap_scratch/cuts")" -ge 100
cp "$tap_scratch/whole" "$victim"
expect_soon "once whole, it is shown" shows_pid "$job_pid"
stop_agent
expect_same "the agent exits with 0" "$?" 0
tap_done
