/* Confidence, caveats and next steps of a verdict. */
#include "doctor/hang_internal.h"

#include <inttypes.h>
#include <string.h>

#include "common/op.h"
#include "common/text.h"

#define SAY text, sizeof(text)

/* ---- caveats, and how much they lower the confidence ------------------------------------------- */

static void doubt_by(struct hang_tale *tale, double factor)
{
	tale->verdict->confidence *= factor;
}

/* Ranks that are not recorded. That a rank has not called something remains true. */
static void doubt_unseen(struct hang_tale *tale, const struct job_comm *comm)
{
	if (comm->missing == 0 || tale->verdict->class == VERDICT_UNSEEN ||
	    tale->verdict->class == VERDICT_AGENT_DEAD)
		return;
	verdict_missing(tale->verdict,
			"%u of %d ranks of %.60s are not visible; one of them may be involved.",
			comm->missing, comm->nranks, comm->label);
	doubt_by(tale,
		 tale->verdict->class == VERDICT_STUCK || tale->verdict->class == VERDICT_GPU_STUCK
			 ? 0.8
			 : 0.92);
}

/* Operations that the culprit's recorder lost. */
static void doubt_losses(struct hang_tale *tale, uint32_t seat)
{
	const struct recording_process *process = hang_process(tale->scene, seat);
	uint64_t never_seen = op_lost_unseen(process->lost);
	uint64_t lost = op_lost_operations(process->lost);
	char text[100] = "";

	job_say_rank(SAY, tale->scene->job, seat);
	text_capital(text);
	if (never_seen > 0) {
		verdict_missing(
			tale->verdict,
			"%s made %" PRIu64
			" calls that were not recorded, so it may have called more than is known.",
			text, never_seen);
		doubt_by(tale, 0.6);
	} else if (lost > 0) {
		verdict_missing(tale->verdict, "%s lost %" PRIu64 " operation records.", text,
				lost);
		doubt_by(tale, 0.9);
	}
	if (tale->scene->seats[seat].comm->counts.untracked > 0) {
		verdict_missing(tale->verdict,
				"%s had operations that could not be tracked (buffer full); it may "
				"be in one of them.",
				text);
		doubt_by(tale, 0.85);
	}
}

/* The rank may be in something whose end NCCL does not report, or busy elsewhere. */
static void doubt_idle(struct hang_tale *tale, uint32_t seat)
{
	const struct job *job = tale->scene->job;
	const struct job_seat *of = &job->seats[seat];
	uint64_t ago_ns;
	char text[100] = "";

	job_say_rank(SAY, tale->scene->job, seat);
	for (uint32_t s = job->first_seat[of->process]; s < job->first_seat[of->process + 1]; s++)
		if (job->seats[s].rank == of->rank && tale->scene->seats[s].is_blind) {
			verdict_missing(tale->verdict,
					"NCCL does not report the end of the last call of %s on "
					"%.60s; it may still be in that call.",
					text, job->comms[job->seats[s].comm].label);
			/* Unlikely if all others have continued after it. */
			doubt_by(tale,
				 tale->scene->matches[job->seats[s].comm].is_by_calls ? 0.85 : 0.7);
			break;
		}
	if (hang_last_active(tale->scene, seat, &ago_ns) != HANG_NOBODY &&
	    ago_ns < tale->scene->pause_ns && !tale->scene->seats[seat].is_over) {
		text_capital(text);
		verdict_missing(tale->verdict,
				"%s is active on another communicator, so it may still arrive or "
				"be late on purpose.",
				text);
		tale->verdict->severity = VERDICT_WARNING;
		doubt_by(tale, 0.6);
	} else if (!tale->scene->seats[seat].is_over) {
		verdict_missing(tale->verdict,
				"Work of %s outside NCCL is not recorded; a long checkpoint or "
				"evaluation looks the same.",
				text);
	}
}

/* Few ranks called it, many did not: perhaps the few are wrong. */
static void doubt_majority(struct hang_tale *tale)
{
	const struct job_comm *comm = &tale->scene->job->comms[tale->lead->comm];
	const struct hang_match *match = &tale->scene->matches[tale->lead->comm];
	uint32_t missing = 0;
	char text[100] = "";

	if (tale->lead->note == HANG_NOTE_PEER)
		return;
	for (uint32_t i = 0; i < comm->seat_count; i++)
		missing += !hang_has_issued(tale->scene, comm->seats[i], match);
	if (comm->seat_count < 4 || missing * 2 <= comm->seat_count)
		return;
	job_say_rank(SAY, tale->scene->job, tale->lead->witness);
	verdict_missing(tale->verdict,
			"Only %u of %u ranks called it: perhaps %s and those with it made one call "
			"too many.",
			comm->seat_count - missing, comm->seat_count, text);
	doubt_by(tale, 0.65);
}

static void doubt_dead(struct hang_tale *tale, uint32_t seat)
{
	const struct hang_scene *scene = tale->scene;
	uint32_t component = scene->processes[scene->job->seats[seat].process].component;

	for (uint32_t p = 0; p < scene->job->recording->count; p++) {
		const struct hang_process *process = &scene->processes[p];

		if (process->component != component ||
		    (process->life != HANG_DEAD && process->life != HANG_STOPPED))
			continue;
		verdict_missing(tale->verdict,
				"%s %.48s of the same job is %s, which may be the cause.", "Rank",
				scene->job->ranks[scene->job->process_rank[p]].label,
				process->life == HANG_DEAD ? "dead" : "stopped");
		doubt_by(tale, 0.6);
		return;
	}
}

/* That others are in it is inferred from calls. */
static void doubt_calls(struct hang_tale *tale)
{
	if (!tale->scene->matches[tale->lead->comm].is_by_calls)
		return;
	verdict_missing(tale->verdict, "Kernel events were not recorded. That the other ranks wait "
				       "in it is inferred from their calls.");
	doubt_by(tale, 0.93);
	if (hang_is_by_launches(tale->scene, tale->lead->comm) &&
	    hang_ranks_with(tale, HANG_GPU_NOT_REACHED) > 0 &&
	    hang_ranks_with(tale, HANG_GPU_REACHED) == 0) {
		verdict_missing(tale->verdict,
				"No GPU has reached it yet: something before it may hold "
				"all ranks up.");
		doubt_by(tale, 0.8);
	}
}

/* A process of several ranks, of which not all seats could be placed: who is meant, and what else may hold it up? */
static void doubt_seats(struct hang_tale *tale)
{
	const struct job *job = tale->scene->job;
	uint32_t seat = tale->lead->seat;
	const struct job_rank *rank;
	char text[300] = "";
	size_t count = 0;

	if (seat == HANG_NOBODY)
		return;
	rank = &job->ranks[job->seats[seat].rank];
	if (!rank->is_unplaced && !tale->lead->may_wait)
		return;
	for (uint32_t r = 0; r < job->rank_count; r++)
		if (job->ranks[r].process == rank->process && !job->ranks[r].is_unplaced)
			tale->ranks[count++] = r;
	if (count > 0)
		hang_say_ranks(SAY, job, tale->ranks, count);
	if (tale->verdict->confidence > 0.7)
		tale->verdict->confidence = 0.7;
	if (rank->is_unplaced)
		verdict_missing(tale->verdict,
				"The process (pid %" PRId64
				") is several ranks%s%s. NCCL does not show which of "
				"them is rank %.48s.",
				tale->verdict->pid, count > 0 ? ": " : "", text, rank->label);
	else
		verdict_missing(tale->verdict,
				"The process (pid %" PRId64
				") is several ranks, and NCCL does not show which of "
				"them are in its other communicators: this one may wait there.",
				tale->verdict->pid);
}

void hang_tell_doubts(struct hang_tale *tale)
{
	const struct hang_end *lead = tale->lead;

	doubt_unseen(tale, &tale->scene->job->comms[lead->comm]);
	hang_doubt_silent_gpus(tale);
	if (lead->seat == HANG_NOBODY)
		return;
	if (lead->class == VERDICT_NEVER_ISSUED || lead->class == VERDICT_NOT_LAUNCHED ||
	    lead->class == VERDICT_GPU_NOT_REACHED)
		doubt_losses(tale, lead->seat);
	if (lead->class == VERDICT_NEVER_ISSUED) {
		doubt_calls(tale);
		doubt_idle(tale, lead->seat);
		doubt_majority(tale);
		doubt_dead(tale, lead->seat);
	}
	if (lead->class == VERDICT_GPU_NOT_REACHED &&
	    hang_process(tale->scene, lead->seat)->odd[ODD_CHANNEL] > 0) {
		verdict_missing(tale->verdict,
				"GPU timestamps of some channels of that process were rejected, so "
				"whether its kernel started is uncertain.");
		doubt_by(tale, 0.8);
	}
	doubt_seats(tale);
}

/* ---- next steps --------------------------------------------------------------------------------- */

/* Names from recordings appear in sentences only; commands contain only numbers and our own words, nothing that others
 * wrote. */

static const char *host_of(const struct hang_tale *tale)
{
	return tale->verdict->host[0] ? tale->verdict->host : "its host";
}

static bool is_of_this_machine(const struct hang_tale *tale)
{
	const struct recording_process *process;

	if (tale->lead == NULL || tale->lead->seat == HANG_NOBODY)
		return false;
	process = hang_process(tale->scene, tale->lead->seat);
	return process->life != RECORDING_ENDED && process->life != RECORDING_KILLED;
}

/* Where the host code of the culprit is. */
static void advise_process(struct hang_tale *tale)
{
	struct verdict *verdict = tale->verdict;
	int64_t pid = verdict->pid;

	if (pid <= 0 || !is_of_this_machine(tale))
		return;
	verdict_advice(verdict, "On %.100s, find out where the process is:", host_of(tale));
	verdict_advice(verdict, "$ ringside ps @%" PRId64, pid);
	verdict_advice(verdict, "$ ringside stacks @%" PRId64, pid);
}

/* A line for each host. Names that a shell would have to be protected from are left out. */
void hang_advise_stacks(struct verdict *verdict)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	const char *job = verdict->job;
	bool is_plain = job[0] != '\0' && job[0] != '-' && job[strspn(job, plain)] == '\0';

	verdict_advice(verdict, "$ ringside stacks --brief%s%s", is_plain ? " --job " : "",
		       is_plain ? job : "");
}

static bool is_job_dead(const struct hang_tale *tale)
{
	return tale->scene->is_guess || tale->verdict->dead_wall_ns != 0;
}

static void advise_evidence(struct hang_tale *tale)
{
	if (is_job_dead(tale))
		return;
	verdict_advice(tale->verdict, "Save the evidence before you stop the job:");
	verdict_advice(tale->verdict, "$ ringside bundle -o hang.tar.gz");
}

static void advise_gpu(struct hang_tale *tale)
{
	struct verdict *verdict = tale->verdict;

	verdict_advice(verdict,
		       "On %.100s, check the GPU and what else runs on it:", host_of(tale));
	if (verdict->gpu >= 0)
		verdict_advice(verdict, "$ nvidia-smi -q -i %d", verdict->gpu);
	else
		verdict_advice(verdict, "$ nvidia-smi -q");
	verdict_advice(verdict, "$ dmesg -T | grep -iE 'xid|nvrm|nvlink'");
}

static void advise_never_issued(struct hang_tale *tale)
{
	advise_process(tale);
	verdict_advice(tale->verdict,
		       "Common causes: a rank-dependent condition around the collective, a slow "
		       "data loader, a checkpoint, a lock, an exception being handled.");
	advise_evidence(tale);
}

static void advise_dead(struct hang_tale *tale)
{
	verdict_advice(tale->verdict,
		       "On %.100s and in the job's log, find out why it died:", host_of(tale));
	verdict_advice(tale->verdict, "$ dmesg -T | grep -iE 'xid|killed process|segfault'");
	verdict_advice(tale->verdict, "$ ringside ps --dead");
	if (!is_job_dead(tale))
		verdict_advice(tale->verdict,
			       "The other ranks will not notice before a timeout: stop the job and "
			       "restart it (torchrun --max-restarts restarts it automatically).");
}

static void advise_stopped(struct hang_tale *tale)
{
	verdict_advice(tale->verdict,
		       "On %.100s, find out what stopped it (TracerPid shows an attached debugger) "
		       "and resume it:",
		       host_of(tale));
	if (tale->verdict->pid > 0) {
		verdict_advice(tale->verdict,
			       "$ grep -E 'State|TracerPid' /proc/%" PRId64 "/status",
			       tale->verdict->pid);
		verdict_advice(tale->verdict, "$ kill -CONT %" PRId64, tale->verdict->pid);
	}
}

static void advise_network(struct hang_tale *tale)
{
	struct verdict *verdict = tale->verdict;
	const char *peer = verdict->peer_host;

	if (strcmp(host_of(tale), peer) == 0)
		peer = "";
	verdict_advice(
		verdict,
		"On %.100s%s%.100s, check the network card, its port and its error counters:",
		host_of(tale), peer[0] ? " and " : "", peer);
	verdict_advice(verdict, "$ ibstat");
	verdict_advice(verdict, "$ ip -s link");
	verdict_advice(verdict, "$ ethtool -S DEVICE | grep -iE 'err|drop|discard|pause'");
	if (verdict->pid > 0 && !is_job_dead(tale))
		verdict_advice(verdict, "$ ss -tinp | grep -A1 'pid=%" PRId64 ",'", verdict->pid);
	verdict_advice(verdict,
		       "NCCL over sockets has no timeout of its own; for InfiniBand see "
		       "NCCL_IB_TIMEOUT. Remove the host from the job if this happens again.");
	advise_evidence(tale);
}

static void advise_mismatch(struct hang_tale *tale)
{
	struct verdict *verdict = tale->verdict;

	advise_process(tale);
	verdict_advice(verdict,
		       "Compare the calls around collective #%" PRIu64
		       " on both ranks: a rank-dependent condition, a smaller last batch, two "
		       "versions of the code.",
		       verdict->number);
	verdict_advice(verdict,
		       "With PyTorch, TORCH_DISTRIBUTED_DEBUG=DETAIL checks every call (slow).");
	verdict_advice(verdict, "Do not trust results computed since then.");
}

static void advise_circle(struct hang_tale *tale)
{
	verdict_advice(tale->verdict,
		       "Make all ranks call collectives of different communicators in the same "
		       "order, or wait for one to finish before calling the next.");
	if (tale->verdict->pid > 0 && !is_job_dead(tale)) {
		verdict_advice(tale->verdict,
			       "On each host, compare where the ranks listed above are:");
		hang_advise_stacks(tale->verdict);
	}
	advise_evidence(tale);
}

static void advise_unseen(struct hang_tale *tale)
{
	verdict_advice(tale->verdict, "Diagnose all nodes of the job at once:");
	verdict_advice(tale->verdict, "$ ringside doctor --agents 'node[001-064]'");
	verdict_advice(tale->verdict,
		       "If ranks are still missing: is the node up, is its agent running, was the "
		       "job started there with the plugin?");
	verdict_advice(tale->verdict, "$ systemctl status ringside-agent");
	verdict_advice(tale->verdict, "$ ringside ls");
}

static void advise_connecting(struct hang_tale *tale)
{
	struct verdict *verdict = tale->verdict;

	text_copy(verdict->page, sizeof(verdict->page), "runbooks/HangGpu.md");
	if (tale->lead->seat != HANG_NOBODY) {
		verdict_advice(verdict,
			       "Check what the other ranks of %.60s do, idle ranks first: which of "
			       "them should call the matching Send or Recv?",
			       verdict->comm);
		if (!is_job_dead(tale))
			hang_advise_stacks(verdict);
	} else {
		verdict_advice(verdict, "Check that the hosts can reach each other on the network "
					"NCCL uses. A firewall or a wrong NCCL_SOCKET_IFNAME "
					"causes this; run with NCCL_DEBUG=INFO for details.");
	}
	advise_process(tale);
	advise_evidence(tale);
}

/* Those that were ended since, by a watchdog or by hand, and did not cause it. */
static void tell_victims_died(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct job *job = scene->job;
	uint32_t process = job->seats[job->comms[tale->lead->comm].seats[0]].process;
	size_t count = 0;
	char text[400] = "";

	for (uint32_t p = 0; p < job->recording->count; p++)
		if (scene->processes[p].has_died_waiting && scene->processes[p].life == HANG_RUNS &&
		    scene->processes[p].component == scene->processes[process].component)
			tale->ranks[count++] = job->process_rank[p];
	if (count == 0)
		return;
	text_append(SAY, count == 1 ? "Rank " : "Ranks ");
	hang_say_ranks(SAY, job, tale->ranks, count);
	verdict_evidence(tale->verdict,
			 "%s %s died since, after waiting like the others; that is not the cause.",
			 text, count == 1 ? "has" : "have");
}

static void tell_death(struct hang_tale *tale)
{
	char text[60] = "";

	if (tale->lead != NULL)
		tell_victims_died(tale);
	if (tale->verdict->dead_wall_ns == 0)
		return;
	hang_say_wall(SAY, tale->verdict->dead_wall_ns);
	verdict_evidence(tale->verdict,
			 "All processes of the job are dead. Their last sign of life was at %s%s.",
			 text, tale->scene->is_guess ? "" : "; times are counted up to then");
}

void hang_tell_advice(struct hang_tale *tale)
{
	tell_death(tale);
	if (tale->lead != NULL && tale->lead->note == HANG_NOTE_CONNECTING) {
		advise_connecting(tale);
		return;
	}
	verdict_set_page(tale->verdict);
	switch (tale->verdict->class) {
	case VERDICT_NEVER_ISSUED:
		advise_never_issued(tale);
		break;
	case VERDICT_PROCESS_DEAD:
		advise_dead(tale);
		break;
	case VERDICT_PROCESS_STOPPED:
		advise_stopped(tale);
		break;
	case VERDICT_NOT_LAUNCHED:
		advise_process(tale);
		advise_gpu(tale);
		advise_evidence(tale);
		break;
	case VERDICT_GPU_NOT_REACHED:
	case VERDICT_GPU_STUCK:
		advise_gpu(tale);
		advise_process(tale);
		advise_evidence(tale);
		break;
	case VERDICT_NETWORK_STUCK:
		advise_network(tale);
		break;
	case VERDICT_MISMATCH:
		advise_mismatch(tale);
		break;
	case VERDICT_DEADLOCK:
		advise_circle(tale);
		break;
	case VERDICT_UNSEEN:
	case VERDICT_AGENT_DEAD:
		advise_unseen(tale);
		break;
	default:
		verdict_advice(tale->verdict, "On each host, check the GPUs and the processes:");
		verdict_advice(tale->verdict, "$ nvidia-smi dmon -s u -c 3");
		verdict_advice(tale->verdict, "$ dmesg -T | grep -iE 'xid|nvrm|nvlink'");
		hang_advise_stacks(tale->verdict);
		advise_evidence(tale);
	}
}

/*
 * From 2.28 on CUDA events around every launch show whether kernels run; 2.26 and 2.27 only have kernel events; before
 * that nothing shows it. 0: unknown.
 */
void hang_advise_kernels(struct hang_tale *tale, uint32_t interface)
{
	enum { FIRST_WITH_KERNELS = 3, FIRST_WITH_LAUNCHES = 5 };
	struct verdict *verdict = tale->verdict;

	if (!is_job_dead(tale)) {
		verdict_advice(
			verdict,
			"On each host, find out whether the ranks compute or wait for their GPUs:");
		hang_advise_stacks(verdict);
	}
	if (interface != 0 && interface < FIRST_WITH_KERNELS) {
		verdict_advice(verdict, "NCCL 2.28 and later show whether kernels run.");
	} else if (interface != 0 && interface < FIRST_WITH_LAUNCHES) {
		verdict_advice(verdict, "To see whether kernels run next time, record kernel "
					"events, which can harm the job:");
		verdict_advice(verdict, "$ ringside run --times kernel -- COMMAND");
	} else if (is_job_dead(tale)) {
		verdict_advice(verdict, "To see whether kernels run next time, time every launch:");
		verdict_advice(verdict, "$ ringside run --times all -- COMMAND");
	} else {
		verdict_advice(verdict, "To see whether kernels run next time, time every launch "
					"for a while:");
		verdict_advice(verdict, "$ ringside record --times 30s");
	}
}
