#include "doctor/doctor.h"
#include "doctor/hang_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/match.h"
#include "common/attributes.h"
#include "common/op.h"
#include "common/text.h"

enum { NAMED = 12 }; /* ranks, or ranges of them, that a sentence lists */

void hang_say_whole_rank(char *text, size_t size, const struct hang_scene *scene, uint32_t seat)
{
	const struct recording_process *process = hang_process(scene, seat);
	const struct job_rank *rank = hang_rank(scene, seat);

	job_say_rank(text, size, scene->job, seat);
	text_append(text, size, " (%.60s", process->host[0] ? process->host : "host unknown");
	if (recording_pid(process) > 0)
		text_append(text, size, ", pid %" PRId64, recording_pid(process));
	if (rank->gpu >= 0)
		text_append(text, size, ", GPU %d", rank->gpu);
	text_append(text, size, ")");
}

void hang_say_operation(char *text, size_t size, const struct hang_scene *scene, uint32_t seat,
			const struct op_record *op)
{
	const struct job_comm *comm = hang_comm(scene, seat);
	uint32_t peer;

	job_say_operation(text, size, scene->job, seat, op);
	if (op->peer < 0 || (op->function != OP_SEND && op->function != OP_RECV))
		return;
	text_append(text, size, op->function == OP_SEND ? " to " : " from ");
	peer = job_member(scene->job, comm, op->peer);
	/* The name of one that was not placed has the communicator in it. */
	if (peer == HANG_NOBODY || hang_rank(scene, peer)->is_unplaced)
		text_append(text, size, "its rank %d", op->peer);
	else
		job_say_rank(text, size, scene->job, peer);
}

void hang_say_held(char *text, size_t size, const struct hang_scene *scene, uint32_t seat)
{
	const struct hang_seat *of = &scene->seats[seat];
	const struct recording_flight *flight = of->front;

	if (flight == NULL && of->flight_count > 0)
		flight = &hang_flights(scene, seat)[of->flight_count - 1];
	if (flight != NULL)
		hang_say_operation(text, size, scene, seat, &flight->op);
	else
		text_append(text, size, "something");
	text_append(text, size, " of %.60s", hang_comm(scene, seat)->label);
}

void hang_say_call(char *text, size_t size, const struct recording_process *process,
		   const struct hang_call *call)
{
	text_append(text, size, "%.24s of %" PRIu64 " %.24s",
		    recording_name(process, OP_NAMES_FUNCTION, call->function), call->count,
		    recording_name(process, OP_NAMES_DATATYPE, call->datatype));
	if (call->root >= 0 && !match_is_synchronising(call->function))
		text_append(text, size, " with root %d", call->root);
}

/* "rank 1 waits for data from rank 3 on channel 0 (21 s)". */
static void hang_say_wait(char *text, size_t size, const struct hang_scene *scene, uint32_t seat,
			  const struct flight_wait *wait)
{
	/* The sentence contains "rank %d" once, for the peer. */
	const char *sentence = flight_reason_text(wait->reason);
	const char *place = strstr(sentence, "rank %d");
	uint32_t peer = job_member(scene->job, hang_comm(scene, seat), wait->peer);
	bool is_one;

	job_say_rank(text, size, scene->job, seat);
	text_append(text, size, " %.*s", place ? (int)(place - sentence) : 80, sentence);
	if (place != NULL && peer != HANG_NOBODY)
		job_say_rank(text, size, scene->job, peer);
	else if (place != NULL)
		text_append(text, size, "its rank %d", wait->peer);
	if (place != NULL)
		text_append(text, size, "%s", place + strlen("rank %d"));
	is_one = !(wait->channels[0] & (wait->channels[0] - 1)) && !wait->channels[1] &&
		 !wait->channels[2] && !wait->channels[3];
	text_append(text, size, is_one ? " on channel " : " on channels ");
	verdict_say_channels(text, size, wait->channels);
	hang_say_for(text, size, scene, " (",
		     hang_ago(scene, scene->job->seats[seat].process, wait->since_ns), ")");
}

void hang_say_for(char *text, size_t size, const struct hang_scene *scene, const char *before,
		  uint64_t ns, const char *after)
{
	char time[UNITS_TEXT];

	if (!scene->is_guess)
		text_append(text, size, "%s%s%s", before, units_duration(time, ns), after);
}

void hang_say_wall(char *text, size_t size, uint64_t wall_ns)
{
	char time[UNITS_TEXT];

	if (wall_ns != 0)
		text_append(text, size, "%s UTC", units_date(time, wall_ns));
}

static int ascending(const void *one, const void *other)
{
	const uint32_t *a = one, *b = other;

	return ORDER(*a, *b);
}

/* Do both have a plain number, and are they consecutive? */
static bool is_next(const struct job *job, uint32_t a, uint32_t b)
{
	return job->ranks[a].rank >= 0 && job->ranks[a].attempt == 0 &&
	       job->ranks[b].attempt == 0 && job->ranks[a].group == job->ranks[b].group &&
	       job->ranks[b].rank == job->ranks[a].rank + 1;
}

/* Ranks are sorted by group and number, so their indices are, too. */
void hang_say_ranks(char *text, size_t size, const struct job *job, uint32_t *ranks, size_t count)
{
	size_t at = 0;

	qsort(ranks, count, sizeof(*ranks), ascending);
	for (size_t named = 0; at < count && named < NAMED; named++) {
		size_t last = at;

		while (last + 1 < count && is_next(job, ranks[last], ranks[last + 1]))
			last++;
		text_append(text, size, "%s%.24s", named > 0 ? ", " : "",
			    job->ranks[ranks[at]].label);
		if (last > at)
			text_append(text, size, "%s%.24s", last > at + 1 ? "-" : ", ",
				    job->ranks[ranks[last]].label);
		at = last + 1;
	}
	if (at < count)
		text_append(text, size, " and %zu more", count - at);
}

#define SAY text, sizeof(text)

/* What CUDA events around launches show: how far GPUs are, between two launches that were timed. */

/* The last collective that the GPU of this seat's rank is known to have finished; 0: unknown. */
static uint64_t last_finished(const struct hang_scene *scene, uint32_t seat)
{
	const struct hang_seat *of = &scene->seats[seat];
	const struct recording_flight *flights = hang_flights(scene, seat);
	uint64_t last = 0;

	for (size_t i = 0; i < of->flight_count; i++)
		if (hang_gpu(scene, seat, &flights[i]) == HANG_GPU_OVER &&
		    op_is_collective(flights[i].op.function) &&
		    !(flights[i].op.flags & OP_FLAG_REPLAY) && flights[i].op.match > last)
			last = flights[i].op.match;
	return last;
}

/* Its collectives before `number` that its GPU may be in: how many, and the first and the last of them. */
static uint32_t unseen_before(const struct hang_scene *scene, uint32_t seat, uint64_t number,
			      uint64_t *first, uint64_t *last)
{
	const struct hang_seat *of = &scene->seats[seat];
	const struct recording_flight *flights = hang_flights(scene, seat);
	uint32_t count = 0;

	for (size_t i = 0; i < of->flight_count; i++) {
		const struct op_record *op = &flights[i].op;

		if (!op_is_collective(op->function) || op->flags & OP_FLAG_REPLAY ||
		    op->match >= number || hang_flight_kind(scene, seat, i) != FLIGHT_UNSEEN)
			continue;
		if (count++ == 0)
			*first = op->match;
		*last = op->match;
	}
	return count;
}

/* Ranks of the lead's communicator whose GPU is there, or of whose GPU this is unknown, into tale->ranks. */
static size_t ranks_with(struct hang_tale *tale, enum hang_gpu gpu)
{
	const struct hang_scene *scene = tale->scene;
	const struct job_comm *comm = &scene->job->comms[tale->lead->comm];
	const struct hang_match *match = &scene->matches[tale->lead->comm];
	size_t count = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t seat = comm->seats[i];

		if (!scene->seats[seat].is_over && hang_is_in_match(scene, seat, match) &&
		    hang_gpu(scene, seat, scene->seats[seat].front) == gpu)
			tale->ranks[count++] = scene->job->seats[seat].rank;
	}
	return count;
}

/* Has this communicator no other sign of what GPUs do? */
static bool is_by_launches(const struct hang_scene *scene, uint32_t c)
{
	return (scene->shows[c] & (HANG_SHOWS_LAUNCHES | COMM_FLAG_SEES_KERNELS)) ==
	       HANG_SHOWS_LAUNCHES;
}

static void tell_unknown_gpus(struct hang_tale *tale)
{
	size_t count = ranks_with(tale, HANG_GPU_UNKNOWN);
	char text[400] = "";

	if (count == 0)
		return;
	hang_say_ranks(SAY, tale->scene->job, tale->ranks, count);
	verdict_missing(
		tale->verdict,
		"Whether the GPU%s of rank%s %s %s reached it is unknown: CUDA events do not "
		"show this launch there.",
		count == 1 ? "" : "s", count == 1 ? "" : "s", text, count == 1 ? "has" : "have");
}

void hang_tell_launches(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	uint32_t seat = tale->lead->seat, process = scene->job->seats[seat].process;
	uint64_t number = scene->seats[seat].front->op.match, first = 0, last = 0;
	uint64_t over = last_finished(scene, seat);
	uint64_t read_ns = scene->job->recording->processes[process]->times_read_ns;
	size_t reached = ranks_with(tale, HANG_GPU_REACHED);
	uint32_t unseen = unseen_before(scene, seat, number, &first, &last);
	char text[300] = "";

	text_append(SAY,
		    "CUDA events around the launches show this: the GPU%s of %zu other rank%s "
		    "reached it, this one had not when it was last asked",
		    reached == 1 ? "" : "s", reached, reached == 1 ? " has" : "s have");
	if (read_ns != 0)
		hang_say_for(SAY, scene, " (", hang_ago(scene, process, read_ns), " ago)");
	verdict_evidence(tale->verdict, "%s.", text);
	if (over > 0)
		verdict_evidence(tale->verdict,
				 "The last collective of %.60s that this GPU is known to have "
				 "finished is #%" PRIu64 ".",
				 hang_comm(scene, seat)->label, over);
	if (unseen == 1)
		verdict_missing(tale->verdict,
				"The launch of #%" PRIu64 " was not timed there: its GPU may also "
				"be in that one.",
				first);
	else if (unseen > 1)
		verdict_missing(tale->verdict,
				"%u launches from #%" PRIu64 " to #%" PRIu64
				" were not timed there: its GPU may also be in one of these.",
				unseen, first, last);
	tell_unknown_gpus(tale);
}

/* All that is known is that no GPU is further than one collective, and all have finished an earlier one. */
static void tell_between(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct hang_end *lead = tale->lead;
	const struct job_comm *comm = &scene->job->comms[lead->comm];
	bool is_bounded = scene->matches[lead->comm].unjudged == HANG_NONE_STARTED;
	uint64_t over = UINT64_MAX;
	char text[200] = "";

	if (!is_by_launches(scene, lead->comm))
		return;
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint64_t finished = last_finished(scene, comm->seats[i]);

		if (!scene->seats[comm->seats[i]].is_over && finished < over)
			over = finished;
	}
	if (over == 0 || over == UINT64_MAX)
		return;
	text_append(SAY,
		    "CUDA events around launches show that the GPUs of all ranks have finished "
		    "collective #%" PRIu64,
		    over);
	if (is_bounded && over + 1 < lead->flight->op.match)
		text_append(SAY,
			    ": they are somewhere between #%" PRIu64 " and #%" PRIu64
			    ", whose launches were not all timed",
			    over, lead->flight->op.match);
	else if (!is_bounded)
		text_append(SAY, "; they do not show the end of a later one");
	verdict_evidence(tale->verdict, "%s.", text);
}

/* All GPUs have reached it, as far as is known, and none has finished it. */
static void tell_reached(struct hang_tale *tale)
{
	const struct hang_end *lead = tale->lead;
	size_t reached;

	if (lead->node != lead->comm || !is_by_launches(tale->scene, lead->comm))
		return;
	reached = ranks_with(tale, HANG_GPU_REACHED);
	if (reached == 0)
		return;
	verdict_evidence(
		tale->verdict,
		"The GPU%s of %zu rank%s reached it and not finished it; CUDA events around "
		"launches do not show which kernel makes no progress.",
		reached == 1 ? "" : "s", reached, reached == 1 ? " has" : "s have");
	tell_unknown_gpus(tale);
}

/* A recorder that asks its GPU and gets no answer: what it knew then may have changed. */
static void doubt_silent_gpus(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct job_comm *comm = &scene->job->comms[tale->lead->comm];
	uint64_t longest_ns = 0;
	size_t count = 0;
	char text[400] = "", time[UNITS_TEXT], date[60] = "";

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t seat = comm->seats[i], p = scene->job->seats[seat].process;
		const struct hang_process *process = &scene->processes[p];

		if (process->gpu_silent_ns == 0 || process->life != HANG_RUNS ||
		    scene->seats[seat].is_over)
			continue;
		tale->ranks[count++] = scene->job->seats[seat].rank;
		if (process->gpu_silent_ns <= longest_ns)
			continue;
		longest_ns = process->gpu_silent_ns;
		date[0] = '\0';
		hang_say_wall(
			date, sizeof(date),
			hang_wall(scene, p, scene->job->recording->processes[p]->times_read_ns));
	}
	if (count == 0)
		return;
	hang_say_ranks(SAY, scene->job, tale->ranks, count);
	verdict_missing(
		tale->verdict,
		"GPU state of rank%s %s was last known %s ago%s%s%s: the CUDA driver has not "
		"answered the recorder since. Nothing is concluded from it.",
		count == 1 ? "" : "s", text, units_duration(time, longest_ns),
		date[0] ? " (at " : "", date, date[0] ? ")" : "");
}

/* Caveats, and how much they lower the confidence. */

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
	if (is_by_launches(tale->scene, tale->lead->comm) &&
	    ranks_with(tale, HANG_GPU_NOT_REACHED) > 0 && ranks_with(tale, HANG_GPU_REACHED) == 0) {
		verdict_missing(tale->verdict,
				"No GPU has reached it yet: something before it may hold "
				"all ranks up.");
		doubt_by(tale, 0.8);
	}
}

void hang_tell_doubts(struct hang_tale *tale)
{
	const struct hang_end *lead = tale->lead;

	if (lead == NULL)
		return;
	doubt_unseen(tale, &tale->scene->job->comms[lead->comm]);
	doubt_silent_gpus(tale);
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
}

/*
 * Advice. Names from recordings appear in sentences only; commands contain only numbers and our own words,
 * nothing that others wrote.
 */

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

/* Where all ranks are, host by host: a line for each. Names that a shell would have to be protected from are left out. */
static void advise_stacks(struct verdict *verdict)
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
		advise_stacks(tale->verdict);
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
			advise_stacks(verdict);
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
		advise_stacks(tale->verdict);
		advise_evidence(tale);
	}
}

/* The cause is not visible, or nothing explains the hang. */

enum { WAITS_MAX = 4, OTHER_COMMS_TOLD = 6 };

/* If only one source is silent, its host is the name without the port. */
static void tell_silent(struct hang_tale *tale)
{
	const struct hang_options *options = tale->scene->options;
	const char *name = NULL;
	size_t silent = 0;

	for (size_t i = 0; options && i < options->source_count; i++) {
		const struct hang_source *source = &options->sources[i];

		if (!source->is_silent)
			continue;
		verdict_evidence(tale->verdict, "%.100s does not answer%s%.100s.",
				 source->name ? source->name : "?", source->problem ? ": " : "",
				 source->problem ? source->problem : "");
		name = source->name;
		silent++;
	}
	if (silent == 1 && name != NULL && strstr(name, "//") == NULL && strchr(name, '[') == NULL)
		text_format(tale->verdict->host, sizeof(tale->verdict->host), "%.*s",
			    (int)strcspn(name, ":"), name);
}

static void hang_tell_unseen(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct hang_end *lead = tale->lead;
	const struct job_comm *comm = &scene->job->comms[lead->comm];
	bool is_agent = lead->class == VERDICT_AGENT_DEAD;
	bool is_only = lead->peer_comm_rank >= 0 && comm->missing == 1;
	char text[600] = "";

	/* If several ranks are not visible, the one that a visible rank waits for may wait itself. */
	if (is_only)
		text_append(SAY, "no data from rank %d of %.40s", lead->peer_comm_rank,
			    comm->label);
	else
		text_append(SAY, "no data from %u of %d ranks of %.40s", comm->missing,
			    comm->nranks, comm->label);
	text_append(SAY, is_agent ? " (an agent does not respond)" : "");
	hang_say_victims(SAY, tale->victims);
	verdict_title(tale->verdict, "%s", text);
	if (is_agent)
		tell_silent(tale);
	hang_tell_waiting(tale);
	if (lead->note == HANG_NOTE_ONE_OF_HOST) {
		const char *host = hang_process(scene, lead->witness)->host;

		text_copy(tale->verdict->host, sizeof(tale->verdict->host), host);
		verdict_evidence(
			tale->verdict,
			"Transfers of %.60s wait for one of its own GPUs, and fewer of its "
			"ranks are recorded than of other hosts.",
			host);
	} else if (lead->peer_comm_rank >= 0 && lead->note != HANG_NOTE_ONLY_UNSEEN) {
		text[0] = '\0';
		hang_say_whole_rank(SAY, scene, lead->witness);
		text_capital(text);
		verdict_evidence(tale->verdict,
				 "%s waits for rank %d of %.60s, which is not recorded%s.", text,
				 lead->peer_comm_rank, comm->label,
				 is_only ? "" : " and may itself wait for another rank");
	} else {
		verdict_evidence(tale->verdict, "All recorded ranks have called it, and nothing "
						"recorded explains why it does not finish.");
	}
}

/* What its ranks wait for: the longest wait of each, a few of them. */
static void tell_waits(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct job_comm *comm = &scene->job->comms[tale->lead->comm];
	uint32_t told = 0;

	for (uint32_t i = 0; i < comm->seat_count && told < WAITS_MAX; i++) {
		const struct hang_seat *seat = &scene->seats[comm->seats[i]];
		char text[300] = "";

		if (seat->wait_count == 0)
			continue;
		hang_say_wait(SAY, scene, comm->seats[i], &seat->waits[0]);
		text_capital(text);
		verdict_evidence(tale->verdict, "%s.", text);
		told++;
	}
}

/* Kernels were launched everywhere, and none runs. */
static void tell_none_started(struct hang_tale *tale)
{
	const struct job_comm *comm = &tale->scene->job->comms[tale->lead->comm];
	char text[600] = "";

	hang_say_lead(tale, SAY);
	verdict_evidence(tale->verdict,
			 "All %u ranks of %.60s have called %s and NCCL has launched its kernel on "
			 "all of them, but no GPU %s started it.",
			 comm->seat_count, comm->label, text,
			 ranks_with(tale, HANG_GPU_UNKNOWN) > 0 ? "is known to have" : "has");
	tell_between(tale);
	verdict_missing(tale->verdict,
			"Earlier GPU work is not recorded: all GPUs may be computing, "
			"or all be stuck.");
}

static void hang_tell_stuck(struct hang_tale *tale)
{
	const struct hang_end *lead = tale->lead;
	char text[600] = "", channels[64] = "";

	text_append(SAY, "%u rank%s stuck in ", tale->victims, tale->victims == 1 ? "" : "s");
	hang_say_lead(tale, SAY);
	verdict_title(tale->verdict, "%s", text);
	if (lead->note == HANG_NOTE_NONE_STARTED) {
		tell_none_started(tale);
		return;
	}
	hang_tell_waiting(tale);
	tell_reached(tale);
	tell_waits(tale);
	verdict_say_channels(channels, sizeof(channels), lead->channels);
	if (lead->note == HANG_NOTE_NAMELESS)
		verdict_missing(tale->verdict, "NCCL before 2.27 does not identify communicators "
					       "across processes, so ranks cannot be compared.");
	else if (channels[0] != '\0' && lead->note == HANG_NOTE_CHANNEL)
		verdict_evidence(tale->verdict,
				 "All ranks are in it, with channels %s open; nothing is on the "
				 "wire, and all ranks are equally far.",
				 channels);
}

/* Other communicators that cannot be judged either. */
static void tell_other_comms(struct hang_tale *tale)
{
	const struct hang_graph *graph = tale->graph;
	uint32_t count = 0, left_out = 0;
	char text[500] = "";

	for (uint32_t e = tale->first; e != HANG_NOBODY; e = graph->ends[e].next) {
		if (graph->ends[e].comm == tale->lead->comm)
			continue;
		if (count >= OTHER_COMMS_TOLD)
			left_out++;
		else
			text_append(SAY, "%s%.60s", count++ > 0 ? ", " : "",
				    tale->scene->job->comms[graph->ends[e].comm].label);
	}
	if (count == 0)
		return;
	if (left_out > 0)
		text_append(SAY, " and %u more", left_out);
	verdict_evidence(tale->verdict, "The same applies to %s.", text);
}

/*
 * From 2.28 on CUDA events around every launch show whether kernels run; 2.26 and 2.27 only have kernel events; before
 * that nothing shows it. 0: unknown.
 */
static void tell_kernels_advice(struct hang_tale *tale, uint32_t interface)
{
	enum { FIRST_WITH_KERNELS = 3, FIRST_WITH_LAUNCHES = 5 };
	struct verdict *verdict = tale->verdict;

	if (!is_job_dead(tale)) {
		verdict_advice(
			verdict,
			"On each host, find out whether the ranks compute or wait for their GPUs:");
		advise_stacks(verdict);
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

/* No rank is named. */
static void forget_who(struct verdict *verdict)
{
	verdict->rank = -1;
	verdict->rank_label[0] = verdict->host[0] = '\0';
	verdict->pid = verdict->gpu = verdict->comm_rank = -1;
}

/* Only calls are recorded, and calls do not show whether they hang. */
static void hang_tell_unjudged(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct hang_end *lead = tale->lead;
	const struct hang_match *match = &scene->matches[lead->comm];
	const struct job_comm *comm = &scene->job->comms[lead->comm];
	struct verdict *verdict = tale->verdict;
	char text[600] = "", time[UNITS_TEXT];
	uint32_t called = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++)
		called += scene->seats[comm->seats[i]].front != NULL;
	units_duration(time, match->still_ns);
	verdict->is_unjudged = true;
	text_copy(verdict->rule, sizeof(verdict->rule), "hang");
	text_copy(verdict->page, sizeof(verdict->page), "DOCTOR.md#not-judged");
	verdict->victims = 0;
	verdict->for_ns = match->still_ns;
	hang_tell_who(tale, lead->witness);
	hang_say_lead(tale, SAY);
	verdict->confidence = 1;
	verdict_title(verdict, "not judged: possible hang in %s; no calls for %s", text, time);
	if (match->unjudged == HANG_ALL_CALLED)
		verdict_evidence(verdict,
				 "All %u visible ranks of %.60s have made the same calls, the last "
				 "one (%s) %s ago.",
				 comm->seat_count, comm->label, text, time);
	else if (match->unjudged == HANG_NONE_STARTED)
		tell_none_started(tale);
	else
		verdict_evidence(
			verdict, "%u of %u ranks of %.60s have called %s, the others have not; %s.",
			called, comm->seat_count, comm->label, text,
			lead->note == HANG_NOTE_SEVERAL ? "hosts run ahead of their GPUs, so all "
							  "may be waiting in an earlier call"
							: "but pauses like this are common there, "
							  "and hosts run ahead of their GPUs");
	if (match->unjudged == HANG_ALL_CALLED)
		tell_between(tale);
	tell_other_comms(tale);
	doubt_silent_gpus(tale);
	if (match->unjudged == HANG_NONE_STARTED) {
		verdict_advice(verdict,
			       "Find out whether the GPUs compute, and what waits for them:");
		verdict_advice(verdict, "$ nvidia-smi dmon -s u -c 3");
		advise_stacks(verdict);
		forget_who(verdict);
		return;
	}
	verdict_missing(
		verdict,
		"Kernel events were not recorded for these operations, %sand inside a node "
		"nothing else shows whether a kernel runs. The operations may have finished "
		"while the ranks compute, load data or save.",
		is_by_launches(scene, lead->comm) ? "CUDA events do not show their end, " : "");
	tell_kernels_advice(tale, scene->seats[lead->witness].comm->info.interface);
	forget_who(verdict);
}

/*
 * Past hangs that ended with an abort. A framework's watchdog aborts communicators after its timeout, which
 * abandons the operations in flight. Only the counters are left.
 *
 * Ranks that abandoned operations after a long time without progress were in something. A rank that
 * abandoned nothing and had made fewer calls than any of those was not: it was missing. Only that is
 * reported; other causes can no longer be seen.
 */

struct aborted {
	uint32_t count; /* ranks that aborted */
	uint32_t first; /* of these, the one stuck for longest */
	uint64_t for_ns;
	uint64_t least; /* collectives that each of them had called */
	uint32_t missing;
	uint32_t culprit; /* the first missing rank; HANG_NOBODY none */
};

/* How long it was stuck before it aborted; 0: it did not. */
static uint64_t gave_up_after(const struct recording_comm *comm)
{
	const struct comm_counts *counts = &comm->counts;
	uint64_t last_ns = counts->last_issue_ns > counts->last_done_ns ? counts->last_issue_ns
									: counts->last_done_ns;

	if (!comm->has_counts || !(comm->info.flags & COMM_FLAG_FINALIZED) ||
	    counts->abandoned == 0 || last_ns == 0 || comm->info.finalize_ns <= last_ns)
		return 0;
	return comm->info.finalize_ns - last_ns;
}

static struct aborted survey_aborted(const struct hang_scene *scene, const struct job_comm *comm)
{
	struct aborted aborted = { .first = HANG_NOBODY,
				   .least = UINT64_MAX,
				   .culprit = HANG_NOBODY };

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct recording_comm *of = scene->seats[comm->seats[i]].comm;
		uint64_t after_ns = gave_up_after(of);

		if (after_ns < scene->hang_ns)
			continue;
		aborted.count++;
		if (of->counts.collectives < aborted.least)
			aborted.least = of->counts.collectives;
		if (after_ns > aborted.for_ns) {
			aborted.for_ns = after_ns;
			aborted.first = comm->seats[i];
		}
	}
	for (uint32_t i = 0; i < comm->seat_count && aborted.count > 0; i++) {
		const struct recording_comm *of = scene->seats[comm->seats[i]].comm;

		if (!of->has_counts || of->is_unplaced || of->counts.abandoned > 0 ||
		    of->counts.collectives >= aborted.least)
			continue;
		if (aborted.missing++ == 0)
			aborted.culprit = comm->seats[i];
	}
	return aborted;
}

static void tell_evidence(struct hang_tale *tale, const struct job_comm *comm,
			  const struct aborted *aborted)
{
	const struct hang_scene *scene = tale->scene;
	const struct comm_counts *counts = &scene->seats[aborted->culprit].comm->counts;
	char text[400] = "", time[UNITS_TEXT];

	verdict_evidence(tale->verdict,
			 "%u of %u ranks of %.60s aborted operations when they closed it, after %s "
			 "without a call or a completion; each of them had called at least %" PRIu64
			 " %s.",
			 aborted->count, comm->seat_count, comm->label,
			 units_duration(time, aborted->for_ns), aborted->least,
			 text_which(aborted->least, "collective", "collectives"));
	hang_say_whole_rank(SAY, scene, aborted->culprit);
	text_capital(text);
	verdict_evidence(tale->verdict, "%s had called %" PRIu64 " and was in no operation.%s",
			 text, counts->collectives,
			 aborted->missing > 1 ? " The same is true of other ranks." : "");
	verdict_missing(tale->verdict,
			"The operations in flight were aborted; only counters are left.");
}

static void tell_aborted(struct hang_tale *tale, uint32_t c, const struct aborted *aborted)
{
	const struct hang_scene *scene = tale->scene;
	const struct job_comm *comm = &scene->job->comms[c];
	uint32_t process = scene->job->seats[aborted->culprit].process;
	bool is_dead = scene->processes[process].life == HANG_DEAD;
	char text[300] = "";

	tale->verdict =
		verdicts_add(tale->verdicts, is_dead ? VERDICT_PROCESS_DEAD : VERDICT_NEVER_ISSUED,
			     VERDICT_ERROR);
	tale->verdict->confidence = 0.8;
	tale->verdict->victims = aborted->count;
	hang_tell_who(tale, aborted->culprit);
	hang_tell_where(tale, c, HANG_NOBODY, NULL, 0);
	tale->verdict->number = scene->seats[aborted->culprit].comm->counts.collectives + 1;
	tale->verdict->for_ns = aborted->for_ns;
	tale->verdict->since_wall_ns =
		hang_wall(scene, scene->job->seats[aborted->first].process,
			  scene->seats[aborted->first].comm->info.finalize_ns - aborted->for_ns);
	job_say_rank(SAY, scene->job, aborted->culprit);
	if (aborted->missing > 1)
		text_append(SAY, " and %u more", aborted->missing - 1);
	text_append(SAY,
		    "%s had not called collective #%" PRIu64 " of %.40s when %u rank%s aborted",
		    is_dead ? " died and" : "", tale->verdict->number, comm->label, aborted->count,
		    aborted->count == 1 ? "" : "s");
	verdict_title(tale->verdict, "%s", text);
	tell_evidence(tale, comm, aborted);
	hang_tell_advice(tale);
}

void hang_tell_aborted(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct job *job = scene->job;

	if (scene->options && scene->options->only_living)
		return;
	tale->lead = NULL;
	for (uint32_t c = 0; c < job->comm_count; c++) {
		const struct job_comm *comm = &job->comms[c];
		struct aborted aborted;

		if (comm->hash == 0 || tale->graph->is_split[c] ||
		    scene->matches[c].level == HANG_HANGS)
			continue;
		aborted = survey_aborted(scene, comm);
		if (aborted.culprit != HANG_NOBODY)
			tell_aborted(tale, c, &aborted);
	}
}

/* One verdict per group of ends: which rank, where, since when, in sentences. */

enum { OTHERS_MAX = 6 }; /* other affected communicators that are listed */

/* ---- rank, place, time ----------------------------------------------------------------------- */

void hang_tell_who(struct hang_tale *tale, uint32_t seat)
{
	const struct job *job = tale->scene->job;

	if (seat == HANG_NOBODY)
		return;
	verdict_set_rank(tale->verdict, job, job->seats[seat].rank);
	tale->verdict->comm_rank = job->seats[seat].comm_rank;
}

void hang_tell_where(struct hang_tale *tale, uint32_t c, uint32_t witness,
		     const struct recording_flight *flight, uint64_t since_ns)
{
	const struct hang_scene *scene = tale->scene;
	const struct job_comm *comm = &scene->job->comms[c];
	struct verdict *verdict = tale->verdict;
	uint32_t process;

	text_copy(verdict->job, sizeof(verdict->job), scene->job->groups[comm->group].name);
	text_copy(verdict->comm, sizeof(verdict->comm), comm->label);
	verdict->comm_hash = comm->hash;
	verdict->dead_wall_ns =
		scene->processes[scene->job->seats[comm->seats[0]].process].dead_wall_ns;
	if (witness == HANG_NOBODY || flight == NULL)
		return;
	process = scene->job->seats[witness].process;
	text_copy(verdict->function, sizeof(verdict->function),
		  recording_name(hang_process(scene, witness), OP_NAMES_FUNCTION,
				 flight->op.function));
	verdict->number = flight->op.match;
	if (since_ns == 0)
		since_ns = flight->op.active_ns ? flight->op.active_ns : flight_since_ns(flight);
	verdict->for_ns = hang_ago(scene, process, since_ns);
	verdict->since_wall_ns = hang_wall(scene, process, since_ns);
}

/* A seat that was not placed, of a process of which another rank is a culprit: it may be the same one. */
static bool may_be_named(const struct hang_tale *tale, const struct hang_end *end)
{
	const struct job *job = tale->scene->job;
	const struct job_rank *rank = &job->ranks[job->seats[end->seat].rank];

	if (!rank->is_unplaced || end == tale->lead)
		return false;
	for (uint32_t e = tale->first; e != HANG_NOBODY; e = tale->graph->ends[e].next) {
		const struct hang_end *other = &tale->graph->ends[e];

		if (other->seat != HANG_NOBODY &&
		    job->seats[other->seat].process == rank->process && other != end &&
		    (other == tale->lead || !job->ranks[job->seats[other->seat].rank].is_unplaced))
			return true;
	}
	return false;
}

size_t hang_culprits(struct hang_tale *tale)
{
	const struct hang_graph *graph = tale->graph;
	size_t count = 0;

	tale->asked++;
	for (uint32_t e = tale->first; e != HANG_NOBODY; e = graph->ends[e].next) {
		uint32_t rank;

		if (graph->ends[e].seat == HANG_NOBODY || may_be_named(tale, &graph->ends[e]))
			continue;
		rank = tale->scene->job->seats[graph->ends[e].seat].rank;
		if (tale->culprit_stamps[rank] == tale->asked)
			continue;
		tale->culprit_stamps[rank] = tale->asked;
		tale->ranks[count++] = rank;
	}
	return count;
}

/* ---- waiting ranks --------------------------------------------------------------------------- */

static void say_since(char *text, size_t size, const struct hang_scene *scene, uint32_t process,
		      uint64_t since_ns, bool is_called)
{
	uint64_t wall_ns = hang_wall(scene, process, since_ns);

	hang_say_for(text, size, scene, is_called ? " " : " for ",
		     hang_ago(scene, process, since_ns), is_called ? " ago" : "");
	if (wall_ns == 0)
		return;
	text_append(text, size, is_called ? " (at " : " (since ");
	hang_say_wall(text, size, wall_ns);
	text_append(text, size, ")");
}

/* Ranks of a match that are at least this far and whose process is alive. */
static uint32_t seats_in(const struct hang_scene *scene, uint32_t c, enum hang_presence least)
{
	const struct job_comm *comm = &scene->job->comms[c];
	uint32_t count = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t s = comm->seats[i];

		/* Where others are known to be in it, a call does not count. */
		count += hang_is_in_match(scene, s, &scene->matches[c]) &&
			 (scene->matches[c].is_by_calls || !scene->seats[s].is_by_calls) &&
			 scene->seats[s].presence >= least && !scene->seats[s].is_over &&
			 scene->processes[scene->job->seats[s].process].life == HANG_RUNS;
	}
	return count;
}

/* "7 of 8 ranks of dp have been in "; "have been waiting in their call to " if no rank is inside. */
static void say_members(char *text, size_t size, const struct hang_scene *scene, uint32_t c)
{
	const struct job_comm *comm = &scene->job->comms[c];
	uint32_t inside = seats_in(scene, c, HANG_UNSURE);
	uint32_t count = inside > 0 ? inside : seats_in(scene, c, HANG_ISSUED);
	bool is_one = count == 1;

	text_append(text, size, "%u of %u %sranks of %.60s %s ", count, comm->seat_count,
		    comm->missing > 0 ? "recorded " : "", comm->label,
		    scene->matches[c].is_by_calls ? "called"
		    : inside > 0		  ? (is_one ? "has been in" : "have been in")
						  : (is_one ? "has been waiting in its call to"
							    : "have been waiting in their call to"));
}

/* One waiting node, as a sentence. */
static void say_node(char *text, size_t size, const struct hang_scene *scene, uint32_t node)
{
	uint32_t comms = (uint32_t)scene->job->comm_count;
	uint32_t witness = node < comms ? scene->matches[node].first : node - comms;
	const struct recording_flight *front = scene->seats[witness].front;
	const struct job_comm *comm = hang_comm(scene, witness);

	if (node < comms) {
		say_members(text, size, scene, node);
	} else {
		job_say_rank(text, size, scene->job, witness);
		text_append(text, size,
			    scene->seats[witness].presence == HANG_ISSUED
				    ? " has been waiting in its call to "
			    : scene->seats[witness].is_by_calls ? " called "
								: " has been in ");
	}
	hang_say_operation(text, size, scene, witness, &front->op);
	if (node >= comms)
		text_append(text, size, " of %.60s", comm->label);
	say_since(text, size, scene, scene->job->seats[witness].process,
		  front->op.active_ns ? front->op.active_ns : flight_since_ns(front),
		  node < comms ? scene->matches[node].is_by_calls
			       : scene->seats[witness].is_by_calls);
}

/* Why a node waits for the next one of the chain. */
static void say_edge(char *text, size_t size, const struct hang_scene *scene,
		     const struct hang_edge *edge)
{
	text_append(text, size, ": ");
	job_say_rank(text, size, scene->job, edge->seat);
	text_append(text, size,
		    edge->kind == HANG_EDGE_NOT_CALLED	    ? " has not called it and is in "
		    : edge->kind == HANG_EDGE_NOT_STARTED   ? " has not started it; its GPU is in "
		    : edge->kind == HANG_EDGE_CALLED_BEFORE ? " called it after "
							    : " may still be in ");
	hang_say_held(text, size, scene, edge->held_by);
}

static const struct hang_edge *edge_of(const struct hang_graph *graph, uint32_t node, uint8_t mark)
{
	for (uint32_t i = graph->first_out[node]; i < graph->first_out[node + 1]; i++)
		if (graph->marks[graph->edges[i].to] == mark)
			return &graph->edges[i];
	return NULL;
}

static bool is_owner(const struct hang_tale *tale, uint32_t node)
{
	for (uint32_t e = tale->first; e != HANG_NOBODY; e = tale->graph->ends[e].next)
		if (tale->graph->ends[e].node == node)
			return true;
	return false;
}

/* The operation a stopped process is in is not evidence of waiting. */
static bool is_of_culprit(const struct hang_tale *tale, uint32_t node)
{
	uint32_t comms = (uint32_t)tale->scene->job->comm_count;

	return tale->lead->class == VERDICT_PROCESS_STOPPED && node >= comms &&
	       tale->scene->processes[tale->scene->job->seats[node - comms].process].life ==
		       HANG_STOPPED;
}

void hang_tell_waiting(struct hang_tale *tale)
{
	char text[600] = "";

	if (is_of_culprit(tale, tale->lead->node))
		return;
	say_node(SAY, tale->scene, tale->lead->node);
	text_capital(text);
	verdict_evidence(tale->verdict, "%s.", text);
}

void hang_tell_stalled(struct hang_tale *tale, uint64_t number)
{
	const struct hang_scene *scene = tale->scene;
	uint32_t first = scene->matches[tale->lead->comm].first;
	const struct recording_flight *front = scene->seats[first].front;
	const struct job_comm *comm = &scene->job->comms[tale->lead->comm];
	uint32_t count = 0;
	char text[300] = "";

	for (uint32_t i = 0; i < comm->seat_count; i++)
		count += scene->seats[comm->seats[i]].front != NULL &&
			 !scene->seats[comm->seats[i]].is_over;
	say_since(SAY, scene, scene->job->seats[first].process,
		  front->op.active_ns ? front->op.active_ns : flight_since_ns(front), false);
	verdict_evidence(tale->verdict,
			 "%u of %u ranks of %.60s have been stuck in collective #%" PRIu64
			 " or a later one%s.",
			 count, comm->seat_count, comm->label, number, text);
}

/* What else is stuck because of it, a few of them. */
static void tell_others(struct hang_tale *tale)
{
	const struct hang_graph *graph = tale->graph;
	uint32_t told = 0, left_out = 0;

	for (size_t i = 0; i < tale->reached; i++) {
		uint32_t node = graph->queue[i];
		const struct hang_edge *edge;
		char text[600] = "";

		if (node == tale->lead->node || !hang_node_hangs(tale->scene, node) ||
		    is_of_culprit(tale, node))
			continue;
		if (told == OTHERS_MAX) {
			left_out++;
			continue;
		}
		told++;
		say_node(SAY, tale->scene, node);
		edge = is_owner(tale, node) ? NULL : edge_of(graph, node, graph->marks[node]);
		if (edge != NULL)
			say_edge(SAY, tale->scene, edge);
		text_capital(text);
		verdict_evidence(tale->verdict, "%s.", text);
	}
	if (left_out > 0)
		verdict_evidence(tale->verdict, "%u more like these wait for the same cause.",
				 left_out);
}

/* ---- common parts ---------------------------------------------------------------------------- */

/* "; 7 ranks wait". */
void hang_say_victims(char *text, size_t size, uint32_t victims)
{
	if (victims > 0)
		text_append(text, size, "; %u rank%s", victims, victims == 1 ? " waits" : "s wait");
}

/* "rank 5 has", "ranks 5-8 (4) have". */
void hang_say_culprits(struct hang_tale *tale, char *text, size_t size, const char *one,
		       const char *many)
{
	size_t count = hang_culprits(tale);

	if (count <= 1) {
		job_say_rank(text, size, tale->scene->job, tale->lead->seat);
		text_append(text, size, " %s", one);
		return;
	}
	text_append(text, size, "ranks ");
	hang_say_ranks(text, size < 110 ? size : 110, tale->scene->job, tale->ranks, count);
	text_append(text, size, " %s", many);
}

void hang_say_lead(const struct hang_tale *tale, char *text, size_t size)
{
	const struct hang_end *lead = tale->lead;

	hang_say_operation(text, size, tale->scene, lead->witness, &lead->flight->op);
	text_append(text, size, " of %.40s", tale->scene->job->comms[lead->comm].label);
}

void hang_tell_culprits(struct hang_tale *tale)
{
	size_t count = hang_culprits(tale);
	char text[600] = "";
	uint32_t host;
	bool is_one_host = true;

	if (count < 2)
		return;
	host = tale->scene->job->ranks[tale->ranks[0]].host;
	for (size_t i = 1; i < count; i++)
		is_one_host &= tale->scene->job->ranks[tale->ranks[i]].host == host;
	hang_say_ranks(SAY, tale->scene->job, tale->ranks, count);
	verdict_evidence(tale->verdict, "Affected: %zu ranks (%s).%s%.60s%s", count, text,
			 is_one_host ? " All are on " : "",
			 is_one_host ? tale->scene->job->hosts[host].name : "",
			 is_one_host ? "." : "");
}

static void tell_channels(struct hang_tale *tale)
{
	const uint64_t *channels = tale->lead->channels;
	struct verdict *verdict = tale->verdict;
	int count = 0;

	verdict_say_channels(verdict->channels, sizeof(verdict->channels), channels);
	for (int c = 0; c < 256; c++)
		if (channels[c / 64] >> (c % 64) & 1) {
			verdict->channel = c;
			count++;
		}
	if (count != 1)
		verdict->channel = -1;
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

void hang_tell_group(struct hang_tale *tale)
{
	const struct hang_end *lead = tale->lead;

	tell_channels(tale);
	hang_tell_who(tale, lead->seat);
	hang_tell_where(tale, lead->comm, lead->witness, lead->flight, lead->since_ns);
	switch (lead->class) {
	case VERDICT_NEVER_ISSUED:
		hang_tell_never_issued(tale);
		break;
	case VERDICT_PROCESS_DEAD:
	case VERDICT_PROCESS_STOPPED:
		hang_tell_process(tale);
		break;
	case VERDICT_NOT_LAUNCHED:
	case VERDICT_GPU_NOT_REACHED:
		hang_tell_gpu_waiting(tale);
		break;
	case VERDICT_GPU_STUCK:
		hang_tell_gpu_stuck(tale);
		break;
	case VERDICT_NETWORK_STUCK:
		hang_tell_link(tale);
		break;
	case VERDICT_MISMATCH:
		hang_tell_split(tale);
		break;
	case VERDICT_UNSEEN:
	case VERDICT_AGENT_DEAD:
		hang_tell_unseen(tale);
		break;
	case VERDICT_BLIND:
		hang_tell_unjudged(tale);
		return;
	default:
		hang_tell_stuck(tale);
	}
	if (tale->is_hang)
		tell_others(tale);
	hang_tell_doubts(tale);
	doubt_seats(tale);
	hang_tell_advice(tale);
}
