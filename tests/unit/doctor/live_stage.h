/* Hand-made processes that are scanned repeatedly: for tests of src/doctor/live.h. */
#ifndef LIVE_STAGE_H
#define LIVE_STAGE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "doctor/live.h"
#include "tests/support/expected_verdicts.h"
#include "tests/support/hand_made.h"
#include "tests/support/poisoned_rest.h"

#define SECOND UINT64_C(1000000000)
enum { STAGE_TOTALS = 64 };

struct stage {
	struct hand_made hand;
	struct live live;
	uint64_t now_ns; /* monotonic; recorders' clocks are 100 s ahead */
};

#define STAGE_AHEAD_NS (100 * SECOND)
#define STAGE_WALL_NS (UINT64_C(1700000000) * SECOND)

static inline void stage_init(struct stage *stage)
{
	struct live_limits limits = live_limits_default();

	*stage = (struct stage){ .now_ns = 5000 * SECOND };
	live_init(&stage->live, &limits);
}

static inline void stage_release(struct stage *stage)
{
	live_release(&stage->live);
	for (size_t i = 0; i < stage->hand.recording.count; i++)
		free(stage->hand.list[i]->totals);
	hand_release(&stage->hand);
}

static inline uint64_t stage_clock(const struct stage *stage)
{
	return stage->now_ns + STAGE_AHEAD_NS;
}

/* A living process, just read. */
static inline struct recording_process *stage_process(struct stage *stage, int64_t rank,
						      const char *host)
{
	struct recording_process *process = hand_process(&stage->hand, "job", rank, host);

	process->life = RECORDING_ALIVE;
	process->start_ticks = 77;
	process->pid_here = process->pid;
	process->counts_ns = stage_clock(stage);
	process->totals = calloc(STAGE_TOTALS, sizeof(*process->totals));
	if (process->totals == NULL)
		abort();
	process->total_count = 1;
	return process;
}

/* `count` of them, all in one communicator, number 1 in each. */
static inline void stage_world(struct stage *stage, int count, int nranks, const char *name)
{
	for (int i = 0; i < count; i++) {
		struct recording_process *process =
			(size_t)i < stage->hand.recording.count
				? stage->hand.list[i]
				: stage_process(stage, i, i < 4 ? "node0" : "node1");

		hand_comm(process, 0x100 + (uint64_t)process->comm_count, name, i, nranks, 1);
		process->comms[process->comm_count - 1].info.flags = COMM_FLAG_SEES_KERNELS;
	}
}

/* `count` collectives of one size have finished in total, and took `ns`. */
static inline struct region_total *stage_total(struct recording_process *process, uint32_t comm,
					       uint8_t function, uint64_t count, uint64_t sum_ns)
{
	uint64_t key = TOTALS_KEY(comm, function, OP_FLOAT32, OP_RING, OP_SIMPLE, 22);
	struct region_total *total = NULL;

	for (size_t i = 1; i < process->total_count; i++)
		if (process->totals[i].key == key)
			total = &process->totals[i];
	if (total == NULL)
		total = &process->totals[process->total_count++];
	*total = (struct region_total){ .key = key,
					.count = count,
					.timed = count,
					.bytes = count << 20,
					.timed_bytes = count << 20,
					.sum_ns = sum_ns };
	return total;
}

/* It has made a call and is in it. */
static inline struct recording_flight *stage_enter(struct stage *stage,
						   struct recording_process *process, uint32_t comm,
						   uint8_t function, uint64_t match)
{
	struct comm_counts *counts = &process->comms[comm - 1].counts;
	struct op_record *op =
		hand_op(process, comm, function, match, 1 << 20, 0, stage_clock(stage));

	op->state = OP_RUNNING;
	op->done_ns = 0;
	op->count = 1 << 18;
	op->time_source = OP_TIME_NONE;
	op->issue_ns = op->active_ns = stage_clock(stage);
	counts->recorded--;
	counts->last_issue_ns = stage_clock(stage);
	if (op_is_collective(function)) {
		counts->collectives = match;
		counts->signature = op->signature;
	}
	return &process->flights[process->flight_count - 1];
}

/* All notices and judgements of a test, whenever a scan changes them. */
static struct expected_text stage_text;

static inline void stage_put_judged(struct expected_text *to, const char *name,
				    const struct live_judged *judged)
{
	expected_put(to, "  %s %s, %u found\n", name, judged->is_judged ? "judged" : "not judged",
		     judged->found);
	if (judged->once[0] != '\0')
		expected_put(to, "    once: %s\n", judged->once);
	if (judged->why[0] != '\0')
		expected_put(to, "    why: %s\n", judged->why);
	if (judged->how[0] != '\0')
		expected_put(to, "    how: %s\n", judged->how);
}

static inline void stage_put_sums(struct expected_text *to, const char *name,
				  const struct live_sums *sums)
{
	if (sums->operations == 0 && sums->not_timed == 0)
		return;
	expected_put(to, "    %s %llu, %llu B; timed %llu, %llu B, %.1f on the bus, %llu ns", name,
		     (unsigned long long)sums->operations, (unsigned long long)sums->bytes,
		     (unsigned long long)sums->timed, (unsigned long long)sums->timed_bytes,
		     sums->bus_bytes, (unsigned long long)sums->time_ns);
	expected_put(to, "; all %.1f ns, %llu of untimed kinds, %u sampled\n", sums->all_ns,
		     (unsigned long long)sums->not_timed, sums->sampled);
}

/* The last point; what is unknown there is left out. */
static inline void stage_put_history(struct expected_text *to, const struct live_history *history)
{
	const struct live_point *last =
		history->count > 0 ? live_point(history, history->count - 1) : NULL;

	if (last == NULL)
		return;
	expected_put(to, "    point %u at %.3f: %.3f/s", history->count,
		     (double)(last->wall_ns - STAGE_WALL_NS) / 1e9, (double)last->operations_per_s);
	if (!isnan(last->busbw) || !isnan(last->algbw))
		expected_put(to, ", %.3f and %.3f GB/s", (double)last->busbw / 1e9,
			     (double)last->algbw / 1e9);
	if (!isnan(last->busy_share))
		expected_put(to, ", busy %.3f", (double)last->busy_share);
	if (!isnan(last->wait_share))
		expected_put(to, ", waits %.3f", (double)last->wait_share);
	expected_put(to, "\n");
}

static inline void stage_put_seat(struct expected_text *to, const struct live *live, uint32_t s)
{
	const struct live_seat *seat = &live->seats[s];
	char absent[200] = "";

	expected_put(to, " %s%s%s: %u in flight for %.3f, last call %.3f",
		     live_state_name(live_state(live, s)), seat->is_behind ? ", behind" : "",
		     seat->is_unseen ? ", unseen" : "", seat->in_flight,
		     (double)seat->oldest_age_ns / 1e9, (double)seat->still_ns / 1e9);
	if (seat->knows_wait)
		expected_put(to, ", waited %llu%s %llu", (unsigned long long)seat->wait_ns,
			     seat->has_wait ? ", now" : ", before",
			     (unsigned long long)seat->wait_grown_ns);
	if (live_say_absent(absent, sizeof(absent), live, s))
		expected_put(to, "; waits for %s", absent);
	expected_put(to, "\n");
	stage_put_sums(to, "sum", &seat->sums);
	stage_put_sums(to, "new", &seat->grown);
	stage_put_history(to, &seat->history);
}

/* A scan in numbers, but for the many ranks of large stages. */
static inline void stage_put_numbers(struct expected_text *to, const struct live *live)
{
	enum { MOST = 12 };

	for (uint32_t c = 0; c < live->job.comm_count && c < MOST; c++) {
		const struct live_comm *comm = &live->comms[c];

		expected_put(to, "communicator %u: called %llu, done %llu, waited %llu", c,
			     (unsigned long long)comm->last_issued,
			     (unsigned long long)comm->last_done,
			     (unsigned long long)comm->wait_ns);
		if (comm->straggler != UINT32_MAX)
			expected_put(to, ", straggler %u: %.3f", comm->straggler,
				     comm->straggler_share);
		if (comm->lead != UINT32_MAX)
			expected_put(to, ", lead %u", comm->lead);
		if (comm->user_tag != 0)
			expected_put(to, ", tag %llu", (unsigned long long)comm->user_tag);
		expected_put(to, "\n");
		stage_put_sums(to, "sum", &comm->sums);
		stage_put_sums(to, "new", &comm->grown);
		stage_put_history(to, &comm->history);
	}
	/* Seats that are alike are one. */
	for (uint32_t s = 0, next; s < live->job.seat_count && s < MOST; s = next) {
		struct expected_text one = { .text = NULL }, other = { .text = NULL };

		stage_put_seat(&one, live, s);
		for (next = s + 1; next < live->job.seat_count && next < MOST; next++) {
			other.used = 0;
			stage_put_seat(&other, live, next);
			if (strcmp(one.text, other.text) != 0)
				break;
		}
		if (next == s + 1)
			expected_put(to, "  seat %u%s", s, one.text);
		else
			expected_put(to, "  seats %u-%u%s", s, next - 1, one.text);
		free(one.text);
		free(other.text);
	}
}

static inline void stage_put(struct expected_text *to, const struct live *live)
{
	for (size_t i = 0; i < live->job.group_count; i++) {
		expected_put(to, "job %zu %s\n", i, live->jobs[i].is_alive ? "alive" : "over");
		stage_put_judged(to, "hangs", &live->jobs[i].hangs);
		stage_put_judged(to, "speed", &live->jobs[i].speed);
	}
	for (size_t i = 0; i < live->notice_count; i++) {
		const struct live_notice *notice = &live->notices[i];

		expected_put(to, "%s: %s\n  communicator %d, seat %d, since %.3f\n",
			     live_notice_name(notice->kind), notice->title, (int)notice->comm,
			     (int)notice->seat,
			     notice->since_wall_ns == 0
				     ? 0.0
				     : (double)(notice->since_wall_ns - STAGE_WALL_NS) / 1e9);
		expected_put(to, "  text: %s\n  hint: %s\n", notice->text, notice->hint);
	}
	stage_put_numbers(to, live);
}

/* Keeps a scan whose titles, judgements or states are not those of the scan before. Texts contain times that pass. */
static inline void stage_keep(const struct stage *stage)
{
	static uint64_t before;
	uint64_t key = 0;

	for (size_t i = 0; i < stage->live.job.group_count; i++) {
		const struct live_job *job = &stage->live.jobs[i];

		key = hash_word(key, job->hangs.is_judged + 2u * job->speed.is_judged +
					     4u * job->hangs.found + 1024u * job->speed.found);
	}
	for (size_t i = 0; i < stage->live.notice_count; i++)
		key = hash_word(key, hash_bytes(stage->live.notices[i].title,
						strcspn(stage->live.notices[i].title, ";")));
	for (uint32_t i = 0; i < stage->live.job.seat_count; i++) {
		const struct live_seat *seat = &stage->live.seats[i];

		key = hash_word(key, live_state(&stage->live, i) + 16u * seat->in_flight +
					     1024u * seat->is_behind + 2048u * seat->has_wait +
					     4096u * (seat->grown.operations > 0));
	}
	if (key == before)
		return;
	before = key;
	expected_put(&stage_text, "=== after %.1f s\n", (double)stage->now_ns / 1e9 - 5000);
	stage_put(&stage_text, &stage->live);
}

/* Scan after this time. Processes that are read report their own clock. */
static inline enum status stage_look(struct stage *stage, uint64_t after_ns)
{
	enum status status;

	stage->now_ns += after_ns;
	for (size_t i = 0; i < stage->hand.recording.count; i++)
		if (stage->hand.list[i]->life == RECORDING_ALIVE)
			stage->hand.list[i]->counts_ns = stage_clock(stage);
	poison_processes(&stage->hand.recording);
	status = live_look(&stage->live, &stage->hand.recording, stage->now_ns,
			   STAGE_WALL_NS + stage->now_ns);
	unpoison_processes(&stage->hand.recording);
	if (status == OK)
		stage_keep(stage);
	return status;
}

static inline void stage_looks(struct stage *stage, int count)
{
	for (int i = 0; i < count; i++)
		if (stage_look(stage, SECOND) != OK)
			abort();
}

/* The seat of a process in its n-th communicator, from 1. */
static inline const struct live_seat *stage_seat(const struct stage *stage, size_t process,
						 uint32_t comm)
{
	const struct job_seat *seat = job_seat(&stage->live.job, process, comm);

	if (seat == NULL)
		abort();
	return &stage->live.seats[seat - stage->live.job.seats];
}

/* The n-th notice of a kind, from 0; NULL if there is none. */
static inline const struct live_notice *stage_notice(const struct stage *stage,
						     enum live_notice_kind kind, size_t nth)
{
	for (size_t i = 0; i < stage->live.notice_count; i++)
		if (stage->live.notices[i].kind == kind && nth-- == 0)
			return &stage->live.notices[i];
	return NULL;
}

static inline bool stage_says(const struct live_notice *notice, const char *title,
			      const char *words)
{
	bool is_said = notice != NULL && strcmp(notice->title, title) == 0 &&
		       strstr(notice->text, words) != NULL;

	if (!is_said && notice != NULL)
		printf("# title: %s\n# text: %s\n", notice->title, notice->text);
	return is_said;
}

#endif
