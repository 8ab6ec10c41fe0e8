/*
 * The doctor's judgement of speed in a running job, for the agent and `top`: the rules of slow_find() over all
 * operations that the ring buffers of its processes hold, from time to time.
 *
 *	scan scan scan judge(A) scan scan judge(B) scan ...      one job at a time, 10 s and more apart
 *	                 |                                       the more expensive, the rarer
 *	                 v
 *	found once:   a candidate, not shown
 *	found twice:  shown with every scan (limits.slow_times)
 *	not found in two judgements in a row: gone
 *
 * What is slower than before disappears from such a comparison when the buffers no longer hold the time before,
 * although it is as slow as ever. Such a verdict stays for a while, and says so.
 *
 * The comparison is the expensive part: live_judge_compare() changes nothing, so a child process can do it.
 */
#include "doctor/live.h"
#include "doctor/live_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/timeline_report.h"
#include "common/attributes.h"
#include "common/clock.h"
#include "common/text.h"
#include "doctor/doctor.h"
#include "doctor/verdict.h"

enum {
	PAUSE_PER_COST = 200, /* 0.5% of a core */
	MISSED_MAX = 2,	      /* judgements in a row that do not find it: it is gone */
	SLOW_MAX = 32,	      /* candidates of a job */
};
/* How long a verdict stays that can no longer be checked. */
#define HELD_NS (600 * SECOND_NS)

void live_job_memory_release(struct live_job_memory *memory)
{
	for (size_t i = 0; i < memory->slow_count; i++)
		verdicts_release(&memory->slow[i].verdict);
	free(memory->slow);
	free(memory->hosts);
	*memory = (struct live_job_memory){ .judged_ns = 0 };
}

/* ---- which job --------------------------------------------------------------------------------- */

static uint32_t job_of_process(const struct live *live, size_t process)
{
	return live->job.rank_count > 0 ? live->job.ranks[live->job.process_rank[process]].group
					: UINT32_MAX;
}

static bool hangs(const struct live *live, uint32_t job)
{
	for (size_t i = 0; i < live->verdicts.count; i++) {
		const struct verdict *verdict = &live->verdicts.list[i];

		if (verdict_is_hang(verdict->class) && verdict->severity == VERDICT_ERROR &&
		    strcmp(verdict->job, live->job.groups[job].name) == 0)
			return true;
	}
	return false;
}

static uint64_t recorded_by(const struct live *live, uint32_t job)
{
	uint64_t recorded = 0;

	for (size_t p = 0; p < live->memory->process_count; p++)
		if (job_of_process(live, p) == job)
			recorded += live->job.recording->processes[p]->recorded;
	return recorded;
}

/* Of those that are due and have finished something since, the one that has waited longest. */
static uint32_t choose_job(const struct live *live)
{
	const struct live_memory *memory = live->memory;
	uint32_t chosen = UINT32_MAX;

	if (memory->monotonic_ns < memory->judge_ns)
		return UINT32_MAX;
	for (uint32_t j = 0; j < memory->job_count; j++) {
		const struct live_job_memory *of = &memory->jobs[j];

		if (!live->jobs[j].is_alive || hangs(live, j) ||
		    (of->judged_ns != 0 && (memory->monotonic_ns - of->judged_ns < LIVE_JUDGE_NS ||
					    recorded_by(live, j) == of->recorded)))
			continue;
		if (chosen == UINT32_MAX || of->judged_ns < memory->jobs[chosen].judged_ns)
			chosen = j;
	}
	return chosen;
}

/* ---- one judgement ------------------------------------------------------------------------------ */

static bool is_in_time(double fraction, void *context)
{
	const uint64_t *until_ns = context;

	(void)fraction;
	return clock_system_ns(CLOCK_PROCESS_CPUTIME_ID) < *until_ns;
}

/* The processes of a job; borrowed, except for the list itself. */
static bool select_job(struct recording *chosen, const struct live *live, uint32_t job)
{
	const struct recording *all = live->job.recording;

	*chosen = *all;
	chosen->count = 0;
	chosen->trouble_count = 0;
	chosen->processes = calloc(all->count + 1, sizeof(struct recording_process *));
	for (size_t p = 0; chosen->processes != NULL && p < all->count; p++)
		if (job_of_process(live, p) == job)
			chosen->processes[chosen->count++] = all->processes[p];
	return chosen->processes != NULL;
}

/* Operations of a process, as many as the doctor gets from an agent. */
enum { JUDGED_LAST = 20000, JUDGED_PAST = 16384 };

/*
 * The same processes with what was kept of the time before their ring buffers, as snapshots, which have both. False: nothing
 * was kept, or there is no memory for it.
 */
static bool select_past(struct recording *whole, const struct recording *chosen)
{
	bool is_made = false;
	unsigned char *bytes;
	size_t length;

	recording_init(whole);
	whole->is_any_owner = chosen->is_any_owner;
	for (size_t i = 0; i < chosen->count; i++)
		is_made |= recording_past_bytes(chosen->processes[i]) > 0;
	for (size_t i = 0; i < chosen->count && is_made; i++) {
		is_made = recording_snapshot(chosen->processes[i], JUDGED_LAST, JUDGED_PAST, &bytes,
					     &length) == OK;
		if (!is_made)
			break;
		is_made = recording_add_memory(whole, "memory", bytes, length, 0) == OK;
		free(bytes);
	}
	is_made = is_made && recording_finish(whole) == OK && recording_show_past(whole) == OK &&
		  whole->shown != NULL && whole->count == chosen->count;
	for (size_t i = 0; i < whole->count; i++)
		text_copy(whole->processes[i]->job, sizeof(whole->processes[i]->job),
			  chosen->processes[0]->job);
	return is_made;
}

static struct live_slow *slow_find_key(struct live_job_memory *memory, uint64_t key)
{
	for (size_t i = 0; i < memory->slow_count; i++)
		if (memory->slow[i].key == key)
			return &memory->slow[i];
	return NULL;
}

static void take_found(struct live_job_memory *memory, const struct verdict *verdict,
		       uint64_t now_ns, uint64_t wall_ns)
{
	uint64_t key = verdict_key(verdict);
	struct live_slow *slow = slow_find_key(memory, key);

	if (slow == NULL) {
		if (memory->slow_count == SLOW_MAX ||
		    !list_grow(&memory->slow, memory->slow_count, sizeof(*slow)))
			return;
		slow = &memory->slow[memory->slow_count++];
		*slow = (struct live_slow){ .key = key };
	}
	/* The same cause may be found in two comparisons. */
	slow->times += slow->found_ns != now_ns;
	slow->missed = 0;
	slow->found_ns = now_ns;
	slow->found_wall_ns = wall_ns;
	verdicts_release(&slow->verdict);
	verdicts_add_copy(&slow->verdict, verdict);
}

/* Slower than before, and what was before is no longer in the buffers. */
static bool is_beyond_check(const struct live *live, const struct live_slow *slow,
			    const struct live_judgement *judgement)
{
	const struct verdict *verdict = slow->verdict.count > 0 ? &slow->verdict.list[0] : NULL;

	return verdict != NULL && slow->times >= live->limits.slow_times && judgement->has_wall &&
	       strcmp(verdict->rule, "past") == 0 && verdict->since_wall_ns != 0 &&
	       judgement->start_ns > verdict->since_wall_ns &&
	       judgement->monotonic_ns - slow->found_ns < HELD_NS;
}

/* It was found again, but is over. */
static bool is_over_now(const struct verdicts *found, uint64_t key)
{
	for (size_t i = 0; i < found->count; i++)
		if (found->list[i].severity < VERDICT_WARNING &&
		    verdict_key(&found->list[i]) == key)
			return true;
	return false;
}

static void drop_others(const struct live *live, struct live_job_memory *memory,
			const struct live_judgement *judgement)
{
	size_t kept = 0;

	for (size_t i = 0; i < memory->slow_count; i++) {
		struct live_slow *slow = &memory->slow[i];
		bool is_over = is_over_now(&judgement->found, slow->key);

		if (slow->found_ns != judgement->monotonic_ns &&
		    (is_over || !is_beyond_check(live, slow, judgement)))
			slow->missed++;
		if (slow->missed == 0 || (!is_over && slow->missed < MISSED_MAX &&
					  slow->times >= live->limits.slow_times)) {
			memory->slow[kept++] = *slow;
			continue;
		}
		verdicts_release(&slow->verdict);
	}
	memory->slow_count = kept;
}

/* "not judged: speed (0 of 300 calls are timed)" -> "0 of 300 calls are timed". */
static void take_why(struct live_judged *speed, const char *title)
{
	static const char prefix[] = "not judged: ", all[] = "speed (";
	size_t length;

	if (strncmp(title, prefix, strlen(prefix)) == 0)
		title += strlen(prefix);
	if (strncmp(title, all, strlen(all)) == 0)
		title += strlen(all);
	text_copy(speed->why, sizeof(speed->why), title);
	length = strlen(speed->why);
	if (length > 0 && speed->why[length - 1] == ')' && strchr(speed->why, '(') == NULL)
		speed->why[length - 1] = '\0';
}

/* The first command of an advice. */
static void take_how(struct live_judged *speed, const struct verdict *verdict)
{
	for (size_t i = 0; i < verdict->advice.count && speed->how[0] == '\0'; i++)
		if (strncmp(verdict->advice.list[i], "$ ", 2) == 0)
			text_copy(speed->how, sizeof(speed->how), verdict->advice.list[i] + 2);
}

/* An older plugin in one of its processes: the times of what went over the network are not used. */
static bool has_spans_in_totals(const struct live *live, uint32_t group)
{
	const struct job *job = &live->job;

	for (size_t r = 0; r < job->rank_count; r++)
		if (job->ranks[r].group == group &&
		    job->recording->processes[job->ranks[r].process]->has_spans_in_totals)
			return true;
	return false;
}

static void take_unjudged(struct live *live, uint32_t job, const struct verdicts *found)
{
	struct live_judged *speed = &live->memory->jobs[job].speed;
	uint32_t elsewhere = live_ranks_elsewhere(live, job);

	for (size_t i = 0; i < found->count && speed->why[0] == '\0'; i++)
		if (found->list[i].is_unjudged) {
			take_why(speed, found->list[i].title);
			take_how(speed, &found->list[i]);
		}
	if (has_spans_in_totals(live, job))
		text_append(
			speed->why, sizeof(speed->why),
			"%stotals of its older plugin include network spans: no times, no busbw",
			speed->why[0] ? "; " : "");
	if (elsewhere == 0)
		return;
	/* What only other nodes know is not judged here, whatever was found. */
	text_append(speed->why, sizeof(speed->why), "%s%u of its ranks %s on other nodes",
		    speed->why[0] ? "; " : "", elsewhere, elsewhere == 1 ? "is" : "are");
	if (speed->how[0] == '\0')
		live_say_agents(live, job, speed->how, sizeof(speed->how));
}

static void take_judgement(struct live *live, uint32_t job, const struct live_judgement *judgement)
{
	struct live_job_memory *memory = &live->memory->jobs[job];
	const struct verdicts *found = &judgement->found;
	uint32_t slow = 0;

	for (size_t i = 0; i < found->count; i++)
		if (verdict_is_slow(found->list[i].class) &&
		    found->list[i].severity >= VERDICT_WARNING) {
			take_found(memory, &found->list[i], judgement->monotonic_ns,
				   judgement->wall_ns);
			slow++;
		}
	drop_others(live, memory, judgement);
	memory->speed = (struct live_judged){
		.is_judged = slow > 0 || judgement->is_judged,
		.wall_ns = judgement->wall_ns,
		.span_ns = judgement->end_ns > judgement->start_ns
				   ? judgement->end_ns - judgement->start_ns
				   : 0,
	};
	for (size_t i = 0; i < memory->slow_count; i++)
		if (memory->slow[i].times < live->limits.slow_times &&
		    memory->slow[i].verdict.count > 0)
			text_copy(memory->speed.once, sizeof(memory->speed.once),
				  memory->slow[i].verdict.list[0].title);
	take_unjudged(live, job, found);
	if (!memory->speed.is_judged && memory->speed.why[0] == '\0')
		text_copy(memory->speed.why, sizeof(memory->speed.why), "nothing to compare");
}

/* The rules take hangs of the job into account. */
static enum status find_slow(struct verdicts *found, const struct live *live, uint32_t job,
			     const struct timeline_report *report)
{
	const struct slow_options options = { .baseline = NULL };

	for (size_t i = 0; i < live->verdicts.count; i++)
		if (verdict_is_hang(live->verdicts.list[i].class) &&
		    strcmp(live->verdicts.list[i].job, live->job.groups[job].name) == 0)
			verdicts_add_copy(found, &live->verdicts.list[i]);
	return slow_find(found, report, &options);
}

/* The job of a judgement; UINT32_MAX: it is gone. */
static uint32_t find_judged(const struct live *live, const struct live_judgement *judgement)
{
	for (uint32_t j = 0; live->memory != NULL && j < live->memory->job_count; j++)
		if (live->memory->job_keys[j] == judgement->key)
			return j;
	return UINT32_MAX;
}

void live_judge_compare(const struct live *live, struct live_judgement *judgement)
{
	struct timeline_options options = TIMELINE_OPTIONS_INIT;
	uint64_t until_ns = clock_system_ns(CLOCK_PROCESS_CPUTIME_ID) + live->limits.judge_ns;
	uint32_t job = find_judged(live, judgement);
	const struct straggler_judged *judged;
	struct timeline_report report;
	struct recording chosen, whole;
	bool has_past;

	options.custom_by[options.custom_count++] = BASELINE_BY;
	options.progress = is_in_time;
	options.progress_context = &until_ns;
	if (!select_job(&chosen, live, job))
		return;
	has_past = select_past(&whole, &chosen);
	judgement->status =
		timeline_report_make(&report, has_past ? &whole : &chosen, NULL, &options);
	if (judgement->status == OK) {
		judged = report.job.group_count > 0 ? report.stragglers.jobs : NULL;
		judgement->status = find_slow(&judgement->found, live, job, &report);
		judgement->is_judged = judged != NULL && judged[0].is_judged;
		judgement->has_wall = report.has_wall;
		judgement->start_ns =
			report.has_wall ? recording_past_wall(report.recording, report.start_ns)
					: report.start_ns;
		judgement->end_ns = report.end_ns;
		timeline_report_release(&report);
	}
	recording_release(&whole);
	free(chosen.processes);
}

static void fail_job(struct live *live, uint32_t job, const struct live_judgement *judgement)
{
	struct live_job_memory *memory = &live->memory->jobs[job];
	uint64_t recorded = memory->recorded, judged_ns = memory->judged_ns;
	char *hosts = memory->hosts;
	bool has_hosts = memory->has_hosts;

	/* What was found before may be over by now. */
	memory->hosts = NULL;
	live_job_memory_release(memory);
	memory->recorded = recorded;
	memory->judged_ns = judged_ns;
	memory->hosts = hosts;
	memory->has_hosts = has_hosts;
	memory->speed.wall_ns = judgement->wall_ns;
	if (judgement->status == ERR_GONE)
		text_format(memory->speed.why, sizeof(memory->speed.why),
			    "its operations take more than %.1f s of CPU time to compare",
			    (double)live->limits.judge_ns / 1e9);
	else
		text_format(memory->speed.why, sizeof(memory->speed.why),
			    "its operations cannot be read: %s", status_text(judgement->status));
	text_copy(memory->speed.how, sizeof(memory->speed.how), "ringside doctor");
}

bool live_judge_begin(struct live *live, uint64_t monotonic_ns, struct live_judgement *judgement)
{
	struct live_memory *memory = live->memory;
	uint32_t job;

	if (memory == NULL || monotonic_ns != memory->monotonic_ns)
		return false;
	job = choose_job(live);
	if (job == UINT32_MAX)
		return false;
	memory->jobs[job].recorded = recorded_by(live, job);
	memory->jobs[job].judged_ns = monotonic_ns;
	*judgement = (struct live_judgement){ .key = memory->job_keys[job],
					      .monotonic_ns = monotonic_ns,
					      .wall_ns = live->wall_ns,
					      .status = ERR_NO_SPACE };
	verdicts_init(&judgement->found);
	return true;
}

void live_judge_end(struct live *live, struct live_judgement *judgement, uint64_t cpu_ns)
{
	uint32_t job = find_judged(live, judgement);

	if (job != UINT32_MAX && judgement->status == OK)
		take_judgement(live, job, judgement);
	else if (job != UINT32_MAX)
		fail_job(live, job, judgement);
	if (live->memory != NULL)
		live->memory->judge_ns = judgement->monotonic_ns + cpu_ns * PAUSE_PER_COST;
	verdicts_release(&judgement->found);
}

bool live_judge(struct live *live, uint64_t monotonic_ns)
{
	struct live_judgement judgement;
	uint64_t start_ns = clock_system_ns(CLOCK_PROCESS_CPUTIME_ID);

	if (!live_judge_begin(live, monotonic_ns, &judgement))
		return false;
	live_judge_compare(live, &judgement);
	live_judge_end(live, &judgement, clock_system_ns(CLOCK_PROCESS_CPUTIME_ID) - start_ns);
	return true;
}

/* ---- what is known at a scan --------------------------------------------------------------------- */

/* Not found by the last judgement, which could not check it: see is_beyond_check(). */
static void note_held(struct verdict *verdict, const struct live_job_memory *memory,
		      const struct live_slow *slow)
{
	char time[UNITS_TEXT];

	if (slow->found_ns != memory->judged_ns && slow->missed == 0)
		verdict_missing(verdict,
				"Last confirmed at %s UTC: the buffers no longer hold operations "
				"from before the slowdown, so it is not known whether it is over.",
				units_clock(time, slow->found_wall_ns));
}

static void show_slow(struct live *live, uint32_t job)
{
	const struct live_job_memory *memory = &live->memory->jobs[job];

	for (size_t i = 0; i < memory->slow_count; i++) {
		const struct live_slow *slow = &memory->slow[i];
		struct verdict *verdict;

		if (slow->times < live->limits.slow_times || slow->verdict.count == 0)
			continue;
		verdict = verdicts_add_copy(&live->verdicts, &slow->verdict.list[0]);
		note_held(verdict, memory, slow);
		live->jobs[job].speed.found++;
	}
}

void live_speeds(struct live *live)
{
	for (uint32_t j = 0; j < live->memory->job_count; j++) {
		struct live_job *job = &live->jobs[j];

		if (!job->is_alive)
			continue;
		job->speed = live->memory->jobs[j].speed;
		if (hangs(live, j)) {
			job->speed = (struct live_judged){ .is_judged = false };
			text_copy(job->speed.why, sizeof(job->speed.why), "the job hangs");
		}
		/* What was slow before it hung is not over: it may be why. */
		show_slow(live, j);
	}
	verdicts_sort(&live->verdicts);
}

/* ---- sentences ------------------------------------------------------------------------------------ */

bool live_is_fine(const struct live_judged *judged)
{
	return judged->is_judged && judged->found == 0 && judged->once[0] == '\0' &&
	       judged->why[0] == '\0';
}

static void say_rest(char *text, size_t size, const struct live_judged *judged)
{
	if (judged->why[0] != '\0')
		text_append(text, size, "%snot judged: %s", judged->is_judged ? "; " : "",
			    judged->why);
}

void live_say_hangs(char *text, size_t size, const struct live_job *job)
{
	text_append(text, size, "Hangs: ");
	if (job->hangs.is_judged && job->hangs.found == 0)
		text_append(text, size, "judged, none%s%s", job->hangs.once[0] ? " yet: " : "",
			    job->hangs.once);
	else if (job->hangs.is_judged)
		text_append(text, size, "judged, %u found", job->hangs.found);
	say_rest(text, size, &job->hangs);
}

void live_say_speed(char *text, size_t size, const struct live_job *job)
{
	const struct live_judged *speed = &job->speed;
	char span[UNITS_TEXT];

	text_append(text, size, "Speed: ");
	if (!speed->is_judged && speed->why[0] == '\0') {
		text_append(text, size, "not judged yet");
		return;
	}
	if (speed->is_judged) {
		text_append(text, size, "judged over the last %s, ",
			    units_duration(span, speed->span_ns / SECOND_NS * SECOND_NS));
		if (speed->found > 0)
			text_append(text, size, "%u found", speed->found);
		else if (speed->once[0] == '\0')
			text_append(text, size, "nothing slow");
		if (speed->once[0] != '\0')
			text_append(text, size, "%sfound once and not confirmed yet: %s",
				    speed->found > 0 ? ", " : "", speed->once);
	}
	say_rest(text, size, speed);
}
