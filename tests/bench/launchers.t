#!/usr/bin/env bash
# Ranks started by launchers: this script sets the environments of torchrun, mpirun and srun.
. "$(dirname "$0")/bench.sh"
arguments=(allreduce alltoall -s 4K -n 3 --patience 20)

free_port() {
	python3 -c 'import socket; one = socket.socket(); one.bind(("127.0.0.1", 0)); print(one.getsockname()[1])'
}

# What a launcher sets for rank $1 of $2.
torchrun() {
	echo "RANK=$1 WORLD_SIZE=$2 LOCAL_RANK=$1 LOCAL_WORLD_SIZE=$2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port"
}
openmpi() {
	echo "OMPI_COMM_WORLD_RANK=$1 OMPI_COMM_WORLD_SIZE=$2 OMPI_COMM_WORLD_LOCAL_RANK=$1 OMPI_COMM_WORLD_LOCAL_SIZE=$2"
}
mpich() {
	echo "PMI_RANK=$1 PMI_SIZE=$2 MPI_LOCALRANKID=$1 MPI_LOCALNRANKS=$2"
}
srun() {
	echo "SLURM_PROCID=$1 SLURM_NTASKS=$2 SLURM_LOCALID=$1 SLURM_STEP_ID=0 SLURM_JOB_ID=$port SLURM_NNODES=1
		SLURM_STEP_NODELIST=localhost SLURM_NODELIST=localhost SLURM_TASKS_PER_NODE=$2 SLURM_STEP_TASKS_PER_NODE=$2"
}

# Starts all ranks as children of one process, by which those of an mpirun find each other. Their exit codes are in
# $codes, their output in out.RANK and err.RANK.
launch() { # launcher ranks argument...
	local launcher=$1 ranks=$2 rank pids=()
	shift 2
	port=$(free_port)
	for ((rank = 0; rank < ranks; rank++)); do
		# shellcheck disable=SC2046
		env $("$launcher" $rank "$ranks") "$ringside" bench "${arguments[@]}" "$@" \
			>"$tap_scratch/out.$rank" 2>"$tap_scratch/err.$rank" &
		pids+=($!)
	done
	codes=
	for rank in "${pids[@]}"; do
		wait "$rank" 2>/dev/null
		codes+="$?"
	done
}
everything() {
	tail -n +1 "$tap_scratch"/err.*
}

for launcher in torchrun openmpi mpich srun; do
	launch $launcher 3 --json
	cp "$tap_scratch/out.0" "$tap_scratch/run.json"
	expect_same "$launcher: three ranks find each other" "$codes $(value '{cell["wrong"] for cell in cells}, run["ranks"]')" "000 {0} 3"
	[ "$codes" = 000 ] || everything | sed 's/^/# /'
	expect_same "$launcher: only rank 0 has results" "$(cat "$tap_scratch"/out.[12])" ""
done
expect_same "the launcher is named" "$(value 'run["launcher"]')" srun
expect_same "they share a GPU, and a note says so" "$(value 'run["gpu_shared"], any("share one GPU" in note for note in run["notes"])')" "True True"

FAKE_GPUS=4 launch torchrun 4 --json
cp "$tap_scratch/out.0" "$tap_scratch/run.json"
expect_same "one GPU per rank" "$codes $(value '[member["device"] for member in members]') $(value 'run["gpu_shared"]')" "0000 0 1 2 3 False"

launch openmpi 2 --meet "$TMPDIR/here"
expect_same "rendezvous by a given file" "$codes" 00
port=$(free_port)
launch mpich 2 --meet "127.0.0.1:$port"
expect_same "rendezvous at a given address" "$codes" 00

FAKE_NCCL_DIE=1:4 launch torchrun 3
expect_same "a rank that dies ends the others" "${codes/137/x}" 3x3
expect_same "rank 0 reports which" "$(grep -c 'rank 1' "$tap_scratch/err.0")" 1
# Inside ncclCommInitRank ranks wait for each other, and NCCL may not notice that one is gone.
for rank in 0 1 2; do
	FAKE_NCCL_DIE=$rank:0 launch torchrun 3
	expect_same "rank $rank dies while communicators are created: the others end" "${codes/137/3}" 333
	expect_same "one line reports it, with rank and host" "$(cat "$tap_scratch"/err.[012])" \
		"ringside bench: rank $rank on $(hostname) ended unexpectedly: killed, or crashed"
done
FAKE_NCCL_HANG=2:0 until_reported '^ringside bench: rank [0-2] on [^:]*: ncclCommInitRank' --stuck launch openmpi 3
expect_same "a rank that never returns from there ends all" "$codes" 333
expect_same "and is reported" "$(sed -E 's/rank [0-2] on [^:]*: //; s/[0-9]+ s$/N s/' "$tap_scratch/err.0")" \
	"ringside bench: ncclCommInitRank did not return within N s"
expect_nothing_left "nothing is left of these"
FAKE_NCCL_FAIL=ncclAllReduce:2 launch srun 3
expect_same "a call that fails ends all" "$codes" 333

# One of three never joins.
launch_two() { # argument...
	local rank
	port=$(free_port)
	for rank in 0 2; do
		# shellcheck disable=SC2046
		env $(torchrun "$rank" 3) "$ringside" bench "${arguments[@]}" "$@" \
			>"$tap_scratch/out.$rank" 2>"$tap_scratch/err.$rank" &
	done
	wait
}
until_reported 'rank 1 did' --patience launch_two
expect_same "a missing rank is named" "$(grep -cE 'rank 1 did not join within' "$tap_scratch/err.0")" 1

expect_complaint "an incomplete environment is reported" 'WORLD_SIZE' env RANK=0 "$ringside" bench
expect_complaint "an invalid rank is reported" 'RANK' env RANK=3 WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=9 "$ringside" bench
expect_nothing_left "nothing is left behind"
tap_done
