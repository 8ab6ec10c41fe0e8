#!/usr/bin/env bash
# Jobs of a real Slurm: ringside bench launched by srun, doctor --slurm, labels, the hub and the targets of Prometheus.
. "$(dirname "$0")/cluster.sh"
for program in ringside-agent ringside-fetch; do
	[ -x "$BUILD/$program" ] || tap_skip_all "$program was not built"
done
[ -e "$spank" ] || tap_skip_all "ringside_spank.so is not built: no slurm/spank.h (scripts/install-deps check)"
set_plugstack "optional $spank plugin=$plugin"
cluster_start "PartitionName=long Nodes=n0"
json() { # perl expression over $r
	perl -MJSON::PP -0777 -ne "my \$r = decode_json(\$_); my \$answer = $1; print \$answer"
}

# ---- ringside bench ----------------------------------------------------------------------------

srun -N2 --ntasks-per-node=2 "$ringside" bench -s 4K -n 3 --json >"$tap_scratch/bench.json" 2>"$tap_scratch/err"
expect_same "srun starts a benchmark on two nodes" \
	"$(json '"$r->{launcher} $r->{ranks} " . join(",", map { $_->{host} } @{$r->{members}})' <"$tap_scratch/bench.json")" "srun 4 n0,n0,n1,n1"
# ---- a hung job --------------------------------------------------------------------------------

for node in 0 1; do
	on_node $node "$BUILD/ringside-agent" --listen "192.0.2.$((node + 1)):9749" --interval 1s --hang 2s 2>"$tap_scratch/agent.$node" &
	until_ok grep -q 'listening on' "$tap_scratch/agent.$node"
done
srun -N2 --ntasks-per-node=2 --account=vision --job-name=vit \
	"$ringside" bench -s 4K -n 1000000 --align none --no-check --stuck 600 >/dev/null 2>&1 &
job=
is_running() { job=$(squeue --noheader --name=vit --states=RUNNING --format=%A) && [ -n "$job" ]; }
until_ok is_running
pid_of_rank() { # rank node
	on_node "$2" "$ringside" ls --json | json '(grep { $_->{job} == '"$job"' && $_->{rank} == '"$1"' && $_->{recorded} > 0 } @{$r->{processes}})[0]{pid}'
}
stopped=
has_begun() { stopped=$(pid_of_rank 2 1) && [ -n "$stopped" ]; }
until_ok has_begun
kill -STOP "$stopped"
verdict() {
	"$ringside" doctor --slurm "$job" --hang 2s --json 2>"$tap_scratch/err" |
		json '"$r->{verdicts}[0]{class}: rank $r->{verdicts}[0]{rank} on $r->{verdicts}[0]{host}, from $r->{looked_at}{sources} agents, job $r->{looked_at}{job}"'
}
until_ok eval '[[ "$(verdict)" == *"rank 2 on n1"* ]]'
expect_same "doctor --slurm asks the nodes of a job" "$(verdict)" "process_stopped: rank 2 on n1, from 2 agents, job $job"

# ---- labels ------------------------------------------------------------------------------------

metrics() { curl -s "http://n$1:9749/metrics"; }
expect_same "user, account, partition and name are labels of the job" "$(metrics 0 | grep -F "nccl_job_info{nccl_job=\"$job\"" | sed -E 's/,(container|container_id|pod|pod_uid|namespace)="[^"]*"//g')" \
	"nccl_job_info{nccl_job=\"$job\",user=\"$(id -un)\",account=\"vision\",partition=\"gpu\",job_name=\"vit\"} 1"
# The nodes share a kernel, so that an agent finds the other's processes, too, as those of a container.
expect_same "and the step is a label of each process" \
	"$(for node in 0 1; do metrics $node | grep -F "host=\"n$node\""; done | grep -E "^nccl_process_info\{nccl_job=\"$job\".*step=\"0\"" | grep -oE 'host="[^"]*"|global_rank="[0-9]*"' | xargs)" \
	"global_rank=0 host=n0 global_rank=1 host=n0 global_rank=2 host=n1 global_rank=3 host=n1"

# ---- jobs that cannot be asked -----------------------------------------------------------------

refused() { # sentence pattern job
	expect_complaint "$1" "^ringside doctor: --slurm $3:? $2" timeout 60 "$ringside" doctor --slurm "$3"
}
held=$(sbatch --parsable --hold -o /dev/null --wrap true)
refused "a job that waits has no nodes" "the job has no nodes: PENDING" "$held"
refused "a job that Slurm does not know" "'squeue' exited with 1: .*Invalid job id specified; Slurm forgets jobs" 4711
array=$(sbatch --parsable --array=1-2 -n1 -o /dev/null --wrap 'exec sleep 300')
until_ok eval '[ "$(squeue --noheader --jobs="$array" --states=RUNNING | wc -l)" -eq 2 ]'
refused "an array is several jobs" "is an array job: choose one of its tasks, like --slurm ${array}_[12]" "$array"
expect_complaint "one of them is a job" "no job '[0-9]+'" "$ringside" doctor --slurm "${array}_1"
scancel "$array"
expect_complaint "what is no job ID does not reach Slurm" "is not a job ID" "$ringside" doctor --slurm "1,2"
expect_complaint "--job chooses another name" "no job 'other'" env SQUEUE_USERS=nobody "$ringside" doctor --slurm "$job" --job other
expect_complaint "without Slurm, that is the reason" "program 'squeue' not found" env PATH=/nowhere "$ringside" doctor --slurm "$job"

# ---- discovery ---------------------------------------------------------------------------------

"$BUILD/ringside-agent" hub --listen 127.0.0.1:9748 --slurm --interval 1s --hang 2s 2>"$tap_scratch/hub" &
hub() { curl -s http://127.0.0.1:9748/api/v1/jobs; }
have_answered() { curl -s http://127.0.0.1:9748/metrics | grep -qxF 'ringside_hub_agents{state="answering"} 2'; }
until_ok have_answered
expect_same "the hub finds the agents of both nodes" "$(hub | json 'join " ", map { "$_->{kind}: $_->{agents}" } @{$r->{sources}}')" "slurm: 2"
is_judged() { hub | grep -q 'process_stopped'; }
until_judged() { until_ok is_judged || { hub && cat "$tap_scratch/hub" && false; }; }
expect_ok "and judges the job" until_judged
expect_ok "slurm-targets writes the nodes" deploy/prometheus/slurm-targets "$tap_scratch/targets.json"
expect_same "each once, with its partitions" \
	"$(json 'join " ", map { "$_->{targets}[0] $_->{labels}{partitions}" } @$r' <"$tap_scratch/targets.json")" "n0:9749 gpu,long n1:9749 gpu"

kill -CONT "$stopped"
scancel "$job"
until_ok eval '[ "$(squeue --noheader --jobs="$job" --states=CANCELLED --format=%A)" = "$job" ]'
"$ringside" doctor --slurm "$job" >"$tap_scratch/out" 2>&1
expect_ok "a job that has ended can be asked for as long as Slurm knows it" grep -q "^job $job: 4 ranks on 2 hosts" "$tap_scratch/out"
tap_done
