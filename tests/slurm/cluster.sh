# shellcheck shell=bash
# For tests with a real Slurm: source this instead of tap.sh, then call cluster_start. A controller and two nodes, n0 and n1,
# run on this host in namespaces of the test:
#
#	network    the cluster has all ports and addresses for itself: n0 is 192.0.2.1, n1 is 192.0.2.2
#	pid        all of it ends with the test, however that ends
#	mount      names of the nodes in /etc/hosts; each node has a /dev/shm of its own; the build is in /mnt, where users of
#	           jobs find it even if the tree is in root's home folder
#	uts        each node has its name as host name
#
# Jobs are `ringside bench` with the CUDA and NCCL of tests/fake_gpu, which load the real plugin as NCCL does.

slurm_skip() { # why
	echo "1..0 # SKIP $1"
	exit 0
}
if [ "${SLURM_TEST_INSIDE-}" != "$0" ]; then
	[ "$(id -u)" -eq 0 ] || slurm_skip "nodes of Slurm need root"
	for slurm_need in slurmctld slurmd srun sbatch ip unshare nsenter; do
		command -v "$slurm_need" >/dev/null || slurm_skip "there is no $slurm_need (scripts/install-deps check)"
	done
	slurm_way=(--net --mount --pid --fork --kill-child --mount-proc)
	unshare "${slurm_way[@]}" true 2>/dev/null || slurm_skip "this host has no namespaces for a cluster"
	# The first process of a pid namespace ignores signals that it does not handle: let that be a shell, not the test.
	export SLURM_TEST_INSIDE=$0
	exec unshare "${slurm_way[@]}" sh -c '"$@"; exit $?' sh "$0" "$@"
fi

# Nodes hide the /dev/shm of the host.
case ${TMPDIR:-/tmp} in /dev/shm*) export TMPDIR=/tmp ;; esac
. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
case $BUILD in /dev/shm/*) tap_skip_all "the build is in /dev/shm, which nodes do not see" ;; esac
mount --bind "$BUILD" /mnt || tap_skip_all "this host does not let a test mount its build folder"
BUILD=/mnt
chmod 755 "$tap_scratch"
for variable in $(compgen -e); do
	case $variable in
	FAKE_* | NCCL_* | RINGSIDE_* | OMPI_* | PMI_* | PMIX_* | MPI_* | SLURM_* | SBATCH_* | SALLOC_* | CUDA_* | RANK | WORLD_SIZE | \
		LOCAL_RANK | LOCAL_WORLD_SIZE | MASTER_ADDR | MASTER_PORT | TORCHELASTIC_RUN_ID) unset "$variable" ;;
	esac
done
ringside=$BUILD/ringside
# shellcheck disable=SC2034 # for tests
plugin=$BUILD/libnccl-profiler-ringside.so
# shellcheck disable=SC2034
spank=$BUILD/ringside_spank.so
fake=$BUILD/tests/fake_gpu
[ -x "$ringside" ] || tap_skip_all "$ringside is not built"
[ -e "$fake/libnccl.so.2" ] || tap_skip_all "$fake is not built: make tests"
export LC_ALL=C RINGSIDE_CUDA=$fake/libcuda.so.1 RINGSIDE_NCCL=$fake/libnccl.so.2
export SLURM_CONF=$tap_scratch/slurm.conf
nodes=(n0 n1)

set_up_network() {
	ip link set lo up && ip address add 192.0.2.1 dev lo && ip address add 192.0.2.2 dev lo &&
		printf '127.0.0.1 localhost %s\n192.0.2.1 n0\n192.0.2.2 n1\n' "$(hostname)" >"$tap_scratch/hosts" &&
		mount --bind "$tap_scratch/hosts" /etc/hosts
}

# A node in its namespaces.
node_start() { # index
	local name=${nodes[$1]}
	unshare --mount --uts sh -c 'hostname "$1" && mount -t tmpfs -o size=512m,mode=1777 none /dev/shm && exec slurmd -D -N "$1"' \
		sh "$name" >"$tap_scratch/slurmd.$name.out" 2>&1 &
	node_pids[$1]=$!
}
# Runs a command on a node.
on_node() { # index command...
	local pid=${node_pids[$1]}
	shift
	nsenter --target "$pid" --mount --uts -- "$@"
}
cluster_is_up() { [ "$(sinfo --noheader --format '%D %t' 2>/dev/null)" = "2 idle" ]; }

# srun and slurmstepd read it for each step.
set_plugstack() { # line
	printf '%s\n' "$1" >"$tap_scratch/plugstack.conf"
}

node_pids=()
node_settings= # of both nodes in slurm.conf
# shellcheck disable=SC2120 # some tests have none
cluster_start() { # further lines of slurm.conf...
	set_up_network || tap_skip_all "this host does not let a namespace have its own addresses"
	mkdir -p "$tap_scratch/state" "$tap_scratch/tmp"
	export TMPDIR=$tap_scratch/tmp
	[ -e "$tap_scratch/plugstack.conf" ] || set_plugstack ""
	cat >"$SLURM_CONF" <<-END
		ClusterName=test
		# Jobs of other tests on this machine have other numbers: an agent finds all of them.
		FirstJobId=$((1000 + $$ % 60000 * 1000))
		SlurmctldHost=localhost
		AuthType=auth/none
		CredType=cred/none
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		SlurmUser=root
		StateSaveLocation=$tap_scratch/state
		SlurmdSpoolDir=$tap_scratch/spool.%n
		SlurmctldPidFile=$tap_scratch/slurmctld.pid
		SlurmdPidFile=$tap_scratch/slurmd.%n.pid
		SlurmctldLogFile=$tap_scratch/slurmctld.log
		SlurmdLogFile=$tap_scratch/slurmd.%n.log
		PlugStackConfig=$tap_scratch/plugstack.conf
		MpiDefault=none
		SelectType=select/cons_tres
		SelectTypeParameters=CR_CPU
		SchedulerType=sched/backfill
		SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
		SlurmdParameters=config_overrides
		KillWait=5
		ReturnToService=0
		NodeName=n0 NodeAddr=192.0.2.1 Port=6818 CPUs=8 $node_settings
		NodeName=n1 NodeAddr=192.0.2.2 Port=6819 CPUs=8 $node_settings
		PartitionName=gpu Nodes=n[0-1] Default=YES State=UP
		$(printf '%s\n' "$@")
	END
	slurmctld -D -c >"$tap_scratch/slurmctld.out" 2>&1 &
	node_start 0
	node_start 1
	until_ok cluster_is_up || {
		tap_line "not ok" "the cluster starts" "$(sinfo 2>&1; tail -n 20 "$tap_scratch"/slurmctld.out "$tap_scratch"/slurmd.*.out)"
		tap_done
	}
}

# Output without what Slurm prints if a job or step has to wait for the one before.
without_waiting() { # file
	grep -vE '^s(run|alloc|batch): (job [0-9]+ (queued|has been)|.*[Ss]tep creat)' "$1"
}
# How often the nodes have logged this. A step of one task runs on any of them: the first may not be free yet.
logged() { # pattern: how often, once it is there; the end of a step is not the end of its writer
	until_ok grep -qE -- "$1" "$tap_scratch"/slurmd.*.log
	cat "$tap_scratch"/slurmd.*.log | grep -cE -- "$1"
}
