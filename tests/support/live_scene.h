/*
 * Hand-made scans of a node, for tests of their output: processes and communicators as in
 * src/recording, matched by job_make(), with the results of src/analysis filled in.
 */
#ifndef LIVE_SCENE_H
#define LIVE_SCENE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/live.h"

enum { SCENE_PROCESSES = 80, SCENE_COMMS = 128, SCENE_NOTICES = 16 };

/* 2026-11-15 08:00:00 UTC plus a fraction: real clocks are not round. */
#define SCENE_WALL_NS UINT64_C(1794729600123456789)

struct live_scene {
	struct recording recording;
	struct recording_process *list[SCENE_PROCESSES];
	struct live live;
	struct live_notice notices[SCENE_NOTICES];
};

static inline void *scene_memory(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (memory == NULL)
		abort();
	return memory;
}

static inline struct recording_process *scene_process(struct live_scene *scene, const char *job,
						      int64_t rank, int64_t world_size)
{
	struct recording_process *process = scene_memory(1, sizeof(*process));

	if (scene->recording.count == SCENE_PROCESSES)
		abort();
	snprintf(process->job, sizeof(process->job), "%s", job);
	snprintf(process->host, sizeof(process->host), "gpu-node-07");
	snprintf(process->mode, sizeof(process->mode), "flight");
	process->rank = rank;
	process->local_rank = rank % 8;
	process->pid = 41200 + (int64_t)scene->recording.count;
	process->world_size = world_size;
	process->life = RECORDING_ALIVE;
	process->interface = 5;
	process->has_counts = true;
	process->comms = scene_memory(SCENE_COMMS, sizeof(*process->comms));
	process->flights = scene_memory(SCENE_COMMS, sizeof(*process->flights));
	scene->list[scene->recording.count++] = process;
	scene->recording.processes = scene->list;
	return process;
}

static inline struct recording_comm *scene_comm(struct recording_process *process, uint64_t hash,
						const char *name, int32_t rank, int32_t nranks,
						int32_t nnodes)
{
	struct recording_comm *comm = &process->comms[process->comm_count++];

	if (process->comm_count > SCENE_COMMS)
		abort();
	*comm = (struct recording_comm){ .info = { .id = (uint32_t)process->comm_count,
						   .interface = 5,
						   .hash = hash,
						   .rank = rank,
						   .nranks = nranks,
						   .nnodes = nnodes,
						   .gpu = (int32_t)process->local_rank },
					 .has_counts = true };
	snprintf(comm->info.name, sizeof(comm->info.name), "%s", name);
	comm->counts.issued = 81200 + hash % 977;
	return comm;
}

/* After the last communicator: match them; nothing is known about their past yet. */
static inline void scene_join(struct live_scene *scene)
{
	struct live_limits limits = live_limits_default();
	struct live *live = &scene->live;

	live_init(live, &limits);
	if (job_make(&live->job, &scene->recording) != OK)
		abort();
	live->seats = scene_memory(live->job.seat_count + 1, sizeof(*live->seats));
	live->comms = scene_memory(live->job.comm_count + 1, sizeof(*live->comms));
	live->jobs = scene_memory(live->job.group_count + 1, sizeof(*live->jobs));
	for (size_t i = 0; i < live->job.comm_count; i++)
		live->comms[i].straggler = UINT32_MAX;
	for (size_t i = 0; i < scene->recording.count; i++)
		live->jobs[live->job.ranks[live->job.process_rank[i]].group].is_alive |=
			scene->list[i]->life == RECORDING_ALIVE;
	for (size_t i = 0; i < live->job.group_count; i++) {
		struct live_job *job = &live->jobs[i];

		job->hangs = (struct live_judged){ .is_judged = job->is_alive,
						   .wall_ns = SCENE_WALL_NS };
		job->speed = job->hangs;
		job->speed.span_ns = UINT64_C(123456789012);
	}
	for (size_t i = 0; i < live->job.seat_count; i++) {
		const struct job_seat *seat = &live->job.seats[i];

		live->seats[i].comm =
			&scene->list[seat->process]->comms[i - live->job.first_seat[seat->process]];
	}
	live->notices = scene->notices;
	live->looks = 1;
	live->wall_ns = SCENE_WALL_NS;
}

/* A job hangs: there is a verdict, and its speed is not judged meanwhile. */
static inline void scene_job_hangs(struct live_scene *scene, uint32_t job)
{
	scene->live.jobs[job].hangs.found++;
	scene->live.jobs[job].speed = (struct live_judged){ .why = "the job hangs" };
}

/* The same sequence for the same seed, so that pictures can be compared. */
static inline double scene_noise(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(*seed >> 40) / (double)(1 << 24) - 0.5;
}

struct scene_course {
	double operations_per_s;
	double busbw;
	double busy;
	double wait;
	uint32_t points;  /* of LIVE_POINTS */
	uint32_t stopped; /* the last scans, without any progress */
	uint64_t seed;
};

static inline void scene_history(struct live_history *history, const struct scene_course *course)
{
	uint64_t seed = course->seed * 77 + 5;

	history->points = scene_memory(LIVE_POINTS, sizeof(*history->points));
	history->count = course->points;
	history->next = course->points % LIVE_POINTS;
	for (uint32_t i = 0; i < course->points; i++) {
		struct live_point *point = &history->points[i];
		double noise = 1 + 0.08 * scene_noise(&seed) + 0.03 * sin(i / 17.0);

		*point = (struct live_point){
			.wall_ns = SCENE_WALL_NS - (uint64_t)(course->points - 1 - i) * 1000000000,
			.operations_per_s = (float)(course->operations_per_s * noise),
			.busbw = (float)(course->busbw * noise),
			.algbw = (float)(course->busbw * noise * 0.57),
			.busy_share = (float)(course->busy * noise),
			.wait_share = (float)(course->wait * noise),
		};
		if (i + course->stopped >= course->points) {
			point->operations_per_s = point->busy_share = 0;
			point->busbw = point->algbw = point->wait_share = NAN;
		}
	}
}

static inline void scene_sums(struct live_sums *sums, const struct scene_course *course)
{
	sums->operations = (uint64_t)(course->operations_per_s * 3600);
	sums->bytes = sums->operations * (48 << 20);
	sums->timed = sums->operations;
}

/* The course of a communicator, the same for all its ranks except for noise and `wait_of`. */
static inline void scene_course(struct live_scene *scene, uint32_t comm,
				const struct scene_course *course, const double *wait_of)
{
	const struct job_comm *of = &scene->live.job.comms[comm];
	struct live_comm *found = &scene->live.comms[comm];
	struct scene_course member = *course;

	scene_history(&found->history, course);
	scene_sums(&found->sums, course);
	found->last_issued = 812;
	found->last_done = 811;
	for (uint32_t i = 0; i < of->seat_count; i++) {
		struct live_seat *seat = &scene->live.seats[of->seats[i]];

		member.seed = course->seed + i * 31 + 7;
		member.wait = wait_of ? wait_of[i] : course->wait;
		member.busbw = course->busbw * (1 - 0.01 * i);
		scene_history(&seat->history, &member);
		scene_sums(&seat->sums, &member);
		seat->wait_ns = isnan(member.wait) ? 0 : (uint64_t)(member.wait * 3600e9);
		seat->has_wait = true;
		found->wait_ns += seat->wait_ns;
	}
}

/* A rank is in an operation. */
static inline struct recording_flight *scene_flight(struct live_scene *scene, uint32_t seat,
						    uint8_t function, uint64_t match,
						    uint64_t age_ns)
{
	const struct job_seat *of = &scene->live.job.seats[seat];
	struct recording_process *process = scene->list[of->process];
	struct recording_flight *flight = &process->flights[process->flight_count++];

	if (process->flight_count > SCENE_COMMS)
		abort();
	flight->op = (struct op_record){ .comm = of->comm_id,
					 .function = function,
					 .number = match + 3,
					 .match = match,
					 .bytes = 64 << 20,
					 .root = OP_NOBODY,
					 .peer = OP_NOBODY,
					 .state = OP_RUNNING,
					 .channels = 8,
					 .kernels_started = 8,
					 .issue_ns = 5000000000 };
	scene->live.seats[seat].oldest = flight;
	scene->live.seats[seat].oldest_age_ns = age_ns;
	scene->live.seats[seat].in_flight = 1;
	return flight;
}

static inline struct live_notice *scene_notice(struct live_scene *scene, enum live_notice_kind kind,
					       uint32_t comm, uint32_t seat, uint64_t seconds)
{
	struct live_notice *notice = &scene->notices[scene->live.notice_count++];

	notice->kind = kind;
	notice->comm = comm;
	notice->seat = seat;
	notice->since_wall_ns = SCENE_WALL_NS - seconds * 1000000000;
	notice->first_wall_ns = notice->since_wall_ns + 20000000000;
	return notice;
}

static inline struct verdict *scene_verdict(struct live_scene *scene, enum verdict_class class,
					    uint32_t comm, uint32_t seat, uint64_t seconds)
{
	const struct job_comm *of = &scene->live.job.comms[comm];
	const struct job_rank *rank = &scene->live.job.ranks[scene->live.job.seats[seat].rank];
	struct verdict *verdict = verdicts_add(&scene->live.verdicts, class, VERDICT_ERROR);

	snprintf(verdict->job, sizeof(verdict->job), "%s", scene->live.job.groups[of->group].name);
	snprintf(verdict->comm, sizeof(verdict->comm), "%s", of->label);
	snprintf(verdict->rank_label, sizeof(verdict->rank_label), "%s", rank->label);
	snprintf(verdict->host, sizeof(verdict->host), "%s", scene->list[rank->process]->host);
	verdict->comm_hash = of->hash;
	verdict->comm_rank = scene->live.job.seats[seat].comm_rank;
	verdict->rank = rank->rank;
	verdict->pid = rank->pid;
	verdict->since_wall_ns = SCENE_WALL_NS - seconds * 1000000000;
	verdict->for_ns = seconds * 1000000000;
	return verdict;
}

/* Frees what scene_*() allocated; struct live owns the rest. */
static inline void live_scene_release(struct live_scene *scene)
{
	struct live *live = &scene->live;

	for (size_t i = 0; i < live->job.seat_count; i++)
		free(live->seats[i].history.points);
	for (size_t i = 0; i < live->job.comm_count; i++)
		free(live->comms[i].history.points);
	verdicts_release(&live->verdicts);
	free(live->seats);
	free(live->comms);
	free(live->jobs);
	job_release(&live->job);
	live->seats = NULL;
	live->comms = NULL;
	live->notices = NULL;
	for (size_t i = 0; i < scene->recording.count; i++) {
		free(scene->list[i]->comms);
		free(scene->list[i]->flights);
		free(scene->list[i]);
	}
	memset(scene, 0, sizeof(*scene));
}

#endif
