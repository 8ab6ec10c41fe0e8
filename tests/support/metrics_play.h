/*
 * A hand-made scan, for tests of metrics: processes with communicators, totals and links as small
 * numbers that are easy to add up. play_look() turns it into a struct live.
 */
#ifndef METRICS_PLAY_H
#define METRICS_PLAY_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/op.h"
#include "doctor/live.h"
#include "output/metrics.h"

/* Less where thousands of scans are made. */
#ifdef PLAY_IS_SMALL
enum { PLAY_COMMS = 80, PLAY_TOTALS = 257, PLAY_LINKS = 257 };
#else
enum { PLAY_COMMS = 600, PLAY_TOTALS = 4096, PLAY_LINKS = 4096 };
#endif
enum { PLAY_PROCESSES = 160 };

struct play {
	struct recording recording;
	struct recording_process *list[PLAY_PROCESSES];
	struct live live;
};

static inline void *play_room(size_t count, size_t size)
{
	void *room = calloc(count, size);

	if (room == NULL)
		abort();
	return room;
}

static inline struct recording_process *play_process(struct play *play, const char *job,
						     int64_t rank)
{
	struct recording_process *process = play_room(1, sizeof(*process));

	if (play->recording.count == PLAY_PROCESSES)
		abort();
	snprintf(process->job, sizeof(process->job), "%s", job);
	snprintf(process->host, sizeof(process->host), "node1");
	snprintf(process->mode, sizeof(process->mode), "flight");
	process->rank = rank;
	process->local_rank = -1;
	process->world_size = -1;
	process->interface = 5;
	process->pid = 1000 + (int64_t)play->recording.count;
	process->life = RECORDING_ALIVE;
	process->comms = play_room(PLAY_COMMS, sizeof(*process->comms));
	process->totals = play_room(PLAY_TOTALS, sizeof(*process->totals));
	process->links = play_room(PLAY_LINKS, sizeof(*process->links));
	process->flights = play_room(4, sizeof(*process->flights));
	/* The first of each is "other". */
	process->total_count = process->link_count = 1;
	play->list[play->recording.count++] = process;
	play->recording.processes = play->list;
	return process;
}

static inline struct recording_comm *play_comm(struct recording_process *process, uint64_t hash,
					       const char *name, int32_t rank, int32_t nranks)
{
	struct recording_comm *comm = &process->comms[process->comm_count++];

	if (process->comm_count > PLAY_COMMS)
		abort();
	comm->info.id = (uint32_t)process->comm_count;
	comm->info.interface = 5;
	comm->info.hash = hash;
	comm->info.rank = rank;
	comm->info.nranks = nranks;
	comm->info.nnodes = nranks;
	comm->info.gpu = 0;
	snprintf(comm->info.name, sizeof(comm->info.name), "%s", name);
	comm->has_counts = true;
	return comm;
}

/* `count` operations that took `ns` each. Key 0 if comm is NULL. */
static inline struct region_total *play_total(struct recording_process *process,
					      struct recording_comm *comm, uint8_t function,
					      uint64_t bytes, uint64_t count, uint64_t ns)
{
	struct region_total *total = &process->totals[0];

	if (comm != NULL) {
		total = &process->totals[process->total_count++];
		total->key = TOTALS_KEY(comm->info.id, function, OP_FLOAT32, OP_RING, OP_SIMPLE,
					op_size_class(bytes));
		comm->counts.issued += count;
		comm->counts.recorded += count;
		comm->counts.last_done_number = comm->counts.issued;
	}
	if (process->total_count > PLAY_TOTALS)
		abort();
	total->count = total->timed = count;
	total->bytes = total->timed_bytes = bytes == OP_BYTES_UNKNOWN ? 0 : count * bytes;
	total->sum_ns = count * ns;
	total->buckets[histogram_bucket(ns)] = count;
	return total;
}

static inline struct region_link *play_link(struct recording_process *process, uint32_t comm,
					    int is_receive, uint32_t peer, uint64_t steps)
{
	struct region_link *link = &process->links[process->link_count++];

	if (process->link_count > PLAY_LINKS)
		abort();
	link->key = (uint64_t)comm << 34 | (uint64_t)(is_receive != 0) << 32 | (peer + 1);
	link->proxies = 1;
	link->steps = steps;
	link->bytes = steps * 1000;
	for (unsigned int i = 0; i < 3; i++)
		link->wait_ns[i] = (i + 1) * 1000000000;
	return link;
}

/* From the processes so far. Seats are ordered as in the job: by process, then communicator. */
static inline struct live *play_look(struct play *play)
{
	struct live *live = &play->live;

	if (live->job.recording != NULL)
		job_release(&live->job);
	free(live->seats);
	free(live->comms);
	if (job_make(&live->job, &play->recording) != OK)
		abort();
	live->seats = play_room(live->job.seat_count + 1, sizeof(*live->seats));
	live->comms = play_room(live->job.comm_count + 1, sizeof(*live->comms));
	for (size_t s = 0; s < live->job.seat_count; s++) {
		const struct job_seat *seat = &live->job.seats[s];

		live->seats[s].comm =
			&play->list[seat->process]->comms[s - live->job.first_seat[seat->process]];
	}
	return live;
}

static inline void play_release(struct play *play)
{
	if (play->live.job.recording != NULL)
		job_release(&play->live.job);
	free(play->live.seats);
	free(play->live.comms);
	free(play->live.notices);
	verdicts_release(&play->live.verdicts);
	for (size_t i = 0; i < play->recording.count; i++) {
		free(play->list[i]->comms);
		free(play->list[i]->totals);
		free(play->list[i]->links);
		free(play->list[i]->flights);
		free(play->list[i]);
	}
	memset(play, 0, sizeof(*play));
}

static inline void play_verdict(struct live *live, const char *job, const char *comm)
{
	struct verdict *verdict =
		verdicts_add(&live->verdicts, VERDICT_NETWORK_STUCK, VERDICT_ERROR);

	snprintf(verdict->job, sizeof(verdict->job), "%s", job);
	snprintf(verdict->comm, sizeof(verdict->comm), "%s", comm);
	snprintf(verdict->host, sizeof(verdict->host), "node\n\xff");
	verdict->confidence = 0.85;
	verdict->comm_rank = 1;
	verdict->rank = 13;
	verdict->peer = 14;
}

/* Two of the notices, and two of the verdicts, have the same labels: shown once. */
static inline void play_wrong(struct live *live)
{
	const char *job = live->job.groups[live->job.comms[0].group].name;

	live->notices = play_room(3, sizeof(*live->notices));
	live->notice_count = 3;
	live->notices[0] = (struct live_notice){ .kind = LIVE_HANG, .comm = 0, .seat = 0 };
	live->notices[1] = live->notices[0]; /* the same labels: once */
	live->notices[2] =
		(struct live_notice){ .kind = LIVE_LOSS, .comm = UINT32_MAX, .seat = UINT32_MAX };
	play_verdict(live, job, live->job.comms[0].label);
	play_verdict(live, job, live->job.comms[0].label);
	play_verdict(live, "elsewhere", "");
	live->verdicts.list[live->verdicts.count - 1].class = VERDICT_SLOW_LINK;
	live->verdicts.list[live->verdicts.count - 1].percent = 12.5;
}

/* An operation with an unknown name, and one that is over. */
static inline void play_flights(struct recording_process *process)
{
	process->flights[0].op = (struct op_record){
		.function = OP_NAME_INTERNED + 1, .number = 99, .state = OP_RUNNING, .peer = -1
	};
	process->flights[1].op = (struct op_record){ .comm = 2,
						     .function = OP_ALL_REDUCE,
						     .datatype = OP_NAME_INTERNED + 2,
						     .number = 98,
						     .match = 8,
						     .state = OP_DONE };
	process->flight_count = 2;
}

/* What the process says about itself. `text` is not copied. */
static inline void play_info(struct recording_process *process, char *text)
{
	process->info = text;
	process->info_bytes = strlen(text);
}

/* Everything that can make trouble in one scan: bad names, all kinds of series. */
static inline void play_hostile(struct play *play)
{
	static char info[] = "uid=7\nenv.USER=\xff\"\nlabel.=\nlabel.a b=1\nlabel.a\x80"
			     "b=2\nlabel.le=3\n"
			     "label.a_b=\\\nhang_after_s=90\n";
	static const char *const names[] = { "a\"b\\c\nd", "\xff\xfe bytes", "caf\xc3\xa9",
					     "{comm=\"x\"} 7\n# EOF" };
	struct recording_process *process;
	struct recording_comm *comm = NULL;
	struct live *live;

	for (int p = 0; p < 2; p++) {
		process = play_process(play, p ? "job \"q\"\\\n\xc3" : "job \"q\"\\\n\xc4", p);
		snprintf(process->names[0], sizeof(process->names[0]), "AllReduce");
		snprintf(process->names[1], sizeof(process->names[1]), "New\x80Name");
		snprintf(process->names[2], sizeof(process->names[2]), "New\x81Name");
		for (uint32_t c = 0; c < 4; c++) {
			comm = play_comm(process, c == 3 ? 0 : 0xabc0 + c, names[c],
					 c == 3 ? -1 : p, 2);
			comm->counts.collectives = 8;
			comm->counts.replays = 9;
			comm->counts.signature = UINT64_MAX;
			play_total(process, comm, OP_ALL_REDUCE, 1 << 20, 10 + c, 1500);
			play_total(process, comm, OP_NAME_INTERNED, 1 << 20, 3, 2500);
			play_total(process, comm, OP_NAME_INTERNED + 1, 4096, 4, 100);
			play_total(process, comm, OP_NAME_INTERNED + 2, 4096, 5, 123456789);
			play_total(process, comm, 77, OP_BYTES_UNKNOWN, 1, UINT64_C(2000000000000));
			play_link(process, c + 1, 0, 1 - (uint32_t)p, 3)->wire_ns = 1500000;
			play_link(process, c + 1, 1, 1 - (uint32_t)p, 4);
		}
		/* At the bounds of classic buckets, and just above. */
		for (unsigned int b = 16; b < HISTOGRAM_BUCKETS; b += 16)
			play_total(process, comm, OP_ALL_GATHER, 1 << 10, 2,
				   histogram_upper_ns(b) + (b / 16) % 2);
		play_total(process, NULL, 0, 100, 7, 5000);
		process->totals[1].sum_ns += 7; /* so that seconds need all their digits */
		process->totals[1].count += 2;
		process->totals[1].shared = 2; /* in one launch */
		process->totals[1].shared_ns = 2000000007;
		process->links[0].proxies = process->links[0].steps = 2;
		process->links[0].wait_ns[1] = 1;
		process->lost[LOST_QUOTA] = 12;
		process->odd[ODD_REPEATED_STATE] = 13;
		play_flights(process);
		play_info(process, info);
	}
	live = play_look(play);
	live->seats[0].in_flight = 3;
	live->seats[0].oldest = &play->list[0]->flights[0];
	live->seats[0].oldest_age_ns = 12345678901;
	live->seats[0].wait_count = 1;
	live->seats[0].waits[0] = (struct flight_wait){ .reason = FLIGHT_RECV_NET, .peer = 1 };
	live->seats[1].wait_ns = 3000000001;
	live->seats[1].knows_wait = true;
	live->seats[1].still_ns = 11000000001;
	play_wrong(live);
}

static inline struct metrics_agent play_agent(void)
{
	static const uint64_t verdicts[VERDICT_CLASSES] = {
		[VERDICT_NETWORK_STUCK] = 7, [VERDICT_SLOW_RANK] = 8
	};

	static const uint64_t kernel[METRICS_KERNEL_EVENTS] = {
		[METRICS_KERNEL_ASKED] = 5, [METRICS_KERNEL_GRANTED] = 4
	};

	return (struct metrics_agent){ .verdicts = verdicts,
				       .kernel = kernel,
				       .version = "1.2.3",
				       .looks = 5,
				       .look_ns = 1234567,
				       .judgements = 3,
				       .judge_ns = 45678901,
				       .cpu_ns = 7000000,
				       .refused = 1,
				       .unreadable = 2,
				       .left_out = 3,
				       .resident_bytes = 1 << 20,
				       .open_fds = 9,
				       .start_wall_ns = UINT64_C(1700000000123456789) };
}

#endif
