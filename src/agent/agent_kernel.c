/* Requests GPU times of every operation when they are needed (--kernel-on-demand). */
#include "agent/agent.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

#define AGENT_KERNEL_PAUSE_NS UINT64_C(600000000000)

enum { NAME = 140 };

void agent_kernel_release(struct agent_kernel *kernel)
{
	for (size_t i = 0; i < kernel->count; i++)
		free(kernel->jobs[i].asked);
	kernel->count = 0;
}

static const char *job_text(const char *name, char text[static NAME])
{
	text_format(text, NAME, name[0] ? "job %s" : "an unnamed job", name);
	return text;
}

/* ---- answers ---------------------------------------------------------------------------------- */

static const struct recording_process *find_process(const struct watch *watch,
						    const struct agent_kernel_asked *asked)
{
	for (size_t i = 0; i < watch->recording.count; i++) {
		const struct watch_file *file = &watch->processes[i].file;

		if (file->device == asked->device && file->inode == asked->inode &&
		    watch->processes[i].died_ns == 0)
			return watch->recording.processes[i];
	}
	return NULL;
}

struct answers {
	size_t granted, other;
	enum recording_answer last;
	const char *reason; /* of the last other answer */
};

static void count_answer(struct agent_kernel *kernel, const struct recording_ask *ask,
			 struct answers *answers)
{
	if (ask->answer == RECORDING_GRANTED) {
		kernel->totals[METRICS_KERNEL_GRANTED]++;
		answers->granted++;
		return;
	}
	kernel->totals[ask->answer == RECORDING_FAILED ? METRICS_KERNEL_FAILED
						       : METRICS_KERNEL_REFUSED]++;
	answers->other++;
	answers->last = ask->answer;
	answers->reason = ask->reason;
}

static void tell_answers(const struct agent_kernel *kernel, const struct agent_kernel_job *job,
			 const struct answers *answers)
{
	char name[NAME];

	job_text(job->name, name);
	if (answers->granted > 0)
		serve_log(SERVE_NOTICE,
			  "%s: %zu of %zu processes time every operation for %" PRIu32 " s", name,
			  answers->granted, job->count, kernel->seconds);
	if (answers->other > 0)
		serve_log(SERVE_NOTICE,
			  "%s: %zu of %zu processes cannot time every operation: %s: %s", name,
			  answers->other, job->count, recording_answer_name(answers->last),
			  answers->reason);
}

static void look_for_answers(struct agent_kernel *kernel, struct agent_kernel_job *job,
			     const struct watch *watch)
{
	struct answers answers = { .reason = "" };

	for (size_t i = 0; i < job->count && job->open > 0; i++) {
		struct agent_kernel_asked *asked = &job->asked[i];
		const struct recording_process *process =
			asked->is_open ? find_process(watch, asked) : NULL;

		if (!asked->is_open)
			continue;
		if (process == NULL && asked->ask.answer == RECORDING_PENDING) {
			asked->ask.answer = RECORDING_FAILED;
			text_copy(asked->ask.reason, sizeof(asked->ask.reason),
				  "the process ended before answering");
		}
		if (process != NULL && !recording_ask_answered(&asked->ask, process))
			continue;
		asked->is_open = false;
		job->open--;
		count_answer(kernel, &asked->ask, &answers);
	}
	tell_answers(kernel, job, &answers);
}

/* ---- requests --------------------------------------------------------------------------------- */

static struct agent_kernel_job *find_job(struct agent_kernel *kernel, const char *name,
					 uint32_t user)
{
	for (size_t i = 0; i < kernel->count; i++)
		if (kernel->jobs[i].user == user && strcmp(kernel->jobs[i].name, name) == 0)
			return &kernel->jobs[i];
	return NULL;
}

static void forget_old(struct agent_kernel *kernel, uint64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < kernel->count; i++) {
		struct agent_kernel_job *job = &kernel->jobs[i];

		if (job->open == 0 && now_ns - job->asked_ns >= AGENT_KERNEL_PAUSE_NS)
			free(job->asked);
		else
			kernel->jobs[kept++] = *job;
	}
	kernel->count = kept;
}

static bool can_be_asked(const struct watch *watch, uint32_t p, uint32_t user)
{
	const struct recording_process *process = watch->recording.processes[p];

	/* A communicator with ranks of several users: one of them is forged. */
	return process->life == RECORDING_ALIVE && process->region != NULL &&
	       process->region_path != NULL && watch->processes[p].file.owner == user;
}

static void ask_process(struct agent_kernel *kernel, struct agent_kernel_job *job,
			const struct watch *watch, uint32_t p)
{
	const struct watch_file *file = &watch->processes[p].file;
	struct agent_kernel_asked *asked = &job->asked[job->count++];

	*asked = (struct agent_kernel_asked){ file->device, file->inode, .is_open = true };
	recording_ask_times(&asked->ask, watch->recording.processes[p], kernel->seconds);
	job->open++;
	kernel->totals[METRICS_KERNEL_ASKED]++;
}

static void tell_asked(const struct agent_kernel *kernel, const struct agent_kernel_job *job,
		       const char *comm, enum live_doubt doubt, double figure)
{
	char name[NAME], why[200];

	if (doubt == LIVE_DOUBT_HANG)
		text_format(why, sizeof(why),
			    "no calls on %.80s for %.0f s, and its last calls are "
			    "not timed",
			    comm, figure);
	else
		text_format(why, sizeof(why),
			    "%.80s is %.1fx slower than before, and its calls are not timed", comm,
			    figure);
	serve_log(SERVE_NOTICE,
		  "%s: asked %zu processes to time every operation for %" PRIu32 " s: %s",
		  job_text(job->name, name), job->count, kernel->seconds, why);
}

static void kernel_ask(struct agent_kernel *kernel, const struct live *live,
		       const struct watch *watch, uint32_t c, uint64_t now_ns)
{
	const struct job_comm *comm = &live->job.comms[c];
	uint32_t user = watch->processes[live->job.seats[comm->seats[0]].process].file.owner;
	const char *name = live->job.groups[comm->group].name;
	struct agent_kernel_job *job;
	enum live_doubt doubt;
	uint32_t last = UINT32_MAX;
	double figure;

	if (find_job(kernel, name, user) != NULL || kernel->count == AGENT_KERNEL_JOBS_MAX)
		return;
	doubt = live_doubt(live, c, &figure);
	if (doubt == LIVE_NO_DOUBT)
		return;
	job = &kernel->jobs[kernel->count];
	*job = (struct agent_kernel_job){ .user = user, .asked_ns = now_ns };
	text_copy(job->name, sizeof(job->name), name);
	job->asked = calloc(comm->seat_count, sizeof(*job->asked));
	if (job->asked == NULL)
		return;
	kernel->count++;
	/* Ranks in the same process share a region. */
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t p = live->job.seats[comm->seats[i]].process;

		if (p != last && can_be_asked(watch, p, user))
			ask_process(kernel, job, watch, p);
		last = p;
	}
	if (job->count > 0)
		tell_asked(kernel, job, comm->label, doubt, figure);
}

void agent_kernel_look(struct agent_kernel *kernel, const struct live *live,
		       const struct watch *watch, uint64_t now_ns)
{
	if (kernel->seconds == 0)
		return;
	for (size_t i = 0; i < kernel->count; i++)
		look_for_answers(kernel, &kernel->jobs[i], watch);
	forget_old(kernel, now_ns);
	for (uint32_t c = 0; c < live->job.comm_count; c++)
		if (live->job.comms[c].seat_count > 0)
			kernel_ask(kernel, live, watch, c, now_ns);
}
