/*
 * The scenes that the tests of the live page play, by name: a node with two jobs on it, and what happens to them.
 */
#ifndef LIVE_SCENES_H
#define LIVE_SCENES_H

#include "tests/support/live_scene.h"

static const char *const scene_names[] = { "quiet",   "straggler", "hang",  "empty", "fresh",
					   "hostile", "many",	   "crowd", "wide" };

static inline uint32_t scene_comm_named(const struct live_scene *scene, const char *name)
{
	for (size_t i = 0; i < scene->live.job.comm_count; i++)
		if (strcmp(scene->live.job.comms[i].name, name) == 0)
			return (uint32_t)i;
	abort();
}

/* Ranks 8 to 15 of 16, and another job's two processes. */
static inline void scene_two_jobs(struct live_scene *scene)
{
	char name[32];

	for (int i = 0; i < 8; i++) {
		struct recording_process *process =
			scene_process(scene, "llama-70b-sft", 8 + i, 16);

		scene_comm(process, 0xd3adc0de77a10001, "world", 8 + i, 16, 2);
		scene_comm(process, 0xd3adc0de77a10002, "tensor parallel", i, 8, 1);
		snprintf(name, sizeof(name), "data parallel %d", i);
		scene_comm(process, 0xd3adc0de77a10010 + (uint64_t)i, name, 1, 2, 2);
		process->recorded = 81200;
		process->local_rank = i;
	}
	for (int i = 0; i < 2; i++) {
		struct recording_process *process = scene_process(scene, "eval", i, 2);

		scene_comm(process, 0x9e0f00aa1b2c3d4e, "", i, 2, 1);
	}
	scene_join(scene);
}

static inline void scene_quiet_courses(struct live_scene *scene, const double *tensor_waits)
{
	struct scene_course course = { 118, 176e9, 0.31, tensor_waits ? 0.22 : 0.04, 300, 0, 1 };

	scene_course(scene, scene_comm_named(scene, "tensor parallel"), &course, tensor_waits);
	course = (struct scene_course){ 2.4, 41.7e9, 0.12, 0.021, 300, 0, 2 };
	scene_course(scene, scene_comm_named(scene, "world"), &course, NULL);
	for (uint32_t i = 0; i < scene->live.job.comm_count; i++) {
		if (scene->live.job.comms[i].nranks != 2)
			continue;
		course = (struct scene_course){
			4.8, 22.1e9 + i * 4e8, 0.06, NAN, 300 - 14 * i, 0, i
		};
		scene_course(scene, i, &course, NULL);
	}
	scene->live.elapsed_ns = 1000000000;
	scene->live.looks = 4711;
	/* Short ones are always in flight somewhere. */
	for (uint32_t i = 0; i < 4; i++)
		scene_flight(scene, 3 * i + 1, OP_ALL_GATHER, 9000 + i, 2100000 + i * 700000);
}

static inline void scene_straggler(struct live_scene *scene)
{
	const double waits[8] = { .24, .26, .25, .27, .25, .004, .26, .24 };
	uint32_t comm;
	struct live_notice *notice;

	scene_two_jobs(scene);
	scene_quiet_courses(scene, waits);
	comm = scene_comm_named(scene, "tensor parallel");
	scene->live.comms[comm].straggler = scene->live.job.comms[comm].seats[5];
	scene->live.comms[comm].straggler_share = 0.25;
	notice =
		scene_notice(scene, LIVE_STRAGGLER, comm, scene->live.job.comms[comm].seats[5], 95);
	snprintf(notice->title, sizeof(notice->title),
		 "rank 13 holds up tensor parallel: 7 ranks wait 25%% of the time");
	snprintf(notice->text, sizeof(notice->text),
		 "Rank 13 (5 in it, pid 41205, GPU 5) waits least, look after look; the others "
		 "wait for "
		 "it at least a quarter of the time.");
	snprintf(notice->hint, sizeof(notice->hint), "ringside report @41205");
	scene->list[2]->lost[LOST_RING_OVERRUN] = 1204;
	scene->list[2]->lost[LOST_DETAIL_OVERRUN] = 77;
	notice = scene_notice(scene, LIVE_LOSS, UINT32_MAX, UINT32_MAX, 12);
	snprintf(notice->title, sizeof(notice->title), "1,204 operations of rank 10 were lost");
	snprintf(notice->text, sizeof(notice->text),
		 "They were overwritten before they were written to the file.");
	snprintf(notice->hint, sizeof(notice->hint),
		 "give the ring more room: RINGSIDE_BUFFER=64MiB");
}

static inline void scene_wait(struct live_seat *seat, enum flight_reason reason, int32_t peer,
			      uint64_t channels)
{
	seat->waits[seat->wait_count++] = (struct flight_wait){ .reason = reason,
								.peer = peer,
								.since_ns = 5900000000,
								.channels = { channels },
								.steps_done = 24,
								.steps = 64 };
}

static inline void scene_hang_verdict(struct live_scene *scene, uint32_t comm, uint32_t seat)
{
	struct verdict *verdict = scene_verdict(scene, VERDICT_NEVER_ISSUED, comm, seat, 38);

	scene_job_hangs(scene, scene->live.job.comms[comm].group);

	verdict->confidence = 0.85;
	verdict->victims = 7;
	verdict->number = 812;
	snprintf(verdict->function, sizeof(verdict->function), "AllReduce");
	verdict_title(verdict,
		      "rank 13 has not called AllReduce #812 of world; 7 ranks wait for it");
	verdict_evidence(verdict,
			 "7 of the 8 ranks seen here are in AllReduce 812 (64 MiB, float32)");
	verdict_evidence(verdict,
			 "rank 13 (gpu-node-07, pid 41205, GPU 5) called AllReduce 811 last, "
			 "38 s ago, and it is over");
	verdict_evidence(verdict, "it is in no operation of another communicator");
	verdict_evidence(verdict,
			 "rank 12 waits for rank 13 to be ready to receive on channels 0-5");
	verdict_missing(verdict,
			"8 of 16 ranks are on other nodes: one of them may be missing, too");
	verdict_advice(verdict, "$ ringside ps @41205");
	verdict_advice(verdict, "$ py-spy dump --pid 41205");
	verdict_advice(verdict, "look for a collective inside a condition that not all ranks meet");
}

static inline void scene_hang(struct live_scene *scene)
{
	struct live_notice *notice;
	const struct job_comm *world;
	uint32_t comm;

	scene_two_jobs(scene);
	scene_quiet_courses(scene, NULL);
	comm = scene_comm_named(scene, "world");
	world = &scene->live.job.comms[comm];
	for (uint32_t i = 0; i < world->seat_count; i++) {
		struct live_seat *seat = &scene->live.seats[world->seats[i]];
		struct scene_course course = { 2.4, 41.7e9, 0.12, 0.02, 300, 38, i };

		free(seat->history.points);
		scene_history(&seat->history, &course);
		seat->still_ns = 38400000000;
		seat->is_behind = i == 5;
		if (i == 5)
			continue;
		scene_flight(scene, world->seats[i], OP_ALL_REDUCE, 812, 38400000000 - i * 3000000);
		if (i == 4 || i == 6)
			scene_wait(seat, i == 4 ? FLIGHT_SEND_PEER : FLIGHT_RECV_NET, 13, 0x3f);
	}
	free(scene->live.comms[comm].history.points);
	scene_history(&scene->live.comms[comm].history,
		      &(struct scene_course){ 2.4, 41.7e9, 0.12, 0.02, 300, 38, 3 });
	notice = scene_notice(scene, LIVE_MISSING, comm, world->seats[5], 38);
	snprintf(notice->title, sizeof(notice->title),
		 "rank 13 has not called AllReduce #812 of world; 7 ranks wait");
	snprintf(notice->text, sizeof(notice->text),
		 "Rank 13 (pid 41205, GPU 5) last issued AllReduce 811, 38 s ago. Look at what its "
		 "Python "
		 "or CPU side does.");
	snprintf(notice->hint, sizeof(notice->hint), "ringside ps @41205");
	scene_hang_verdict(scene, comm, world->seats[5]);
	scene->list[9]->life = RECORDING_KILLED;
	scene->live.seats[scene->live.job.first_seat[9]].is_over = true;
	notice = scene_notice(scene, LIVE_DEAD, scene->live.job.comm_count - 1,
			      scene->live.job.first_seat[9], 61);
	snprintf(notice->title, sizeof(notice->title),
		 "rank 1 of eval died without ending its recording (pid 41209)");
}

/* Names that want to be code, or to look like another name. */
static inline void scene_hostile(struct live_scene *scene)
{
	static const char evil[] = "</script><img src=x onerror=alert(1)>";
	struct live_notice *notice;
	char name[96];

	for (int i = 0; i < 2; i++) {
		struct recording_process *process = scene_process(scene, "", i, 2);

		snprintf(process->job, sizeof(process->job), "<b>job</b>%s", evil);
		snprintf(process->host, sizeof(process->host), "\"><svg onload=alert(2)>");
		snprintf(process->mode, sizeof(process->mode), "<i>");
		snprintf(name, sizeof(name), "%s&amp;\xe2\x80\xaegnp\xff", evil);
		scene_comm(process, 0xabc, name, i, 2, 1);
		snprintf(name, sizeof(name), "${alert(3)}'\";--");
		scene_comm(process, 0xabd, name, i, 2, 1);
		scene_comm(process, 0, "__proto__", i, 2, 1);
	}
	scene_join(scene);
	scene->live.elapsed_ns = 1000000000;
	for (uint32_t i = 0; i < scene->live.job.comm_count; i++)
		scene_course(scene, i, &(struct scene_course){ 5, 1e9, 0.1, 0.05, 50, 0, i }, NULL);
	scene_flight(scene, 0, OP_BROADCAST, 3, 3000000000);
	notice = scene_notice(scene, LIVE_BEHIND, 0, 0, 9);
	snprintf(notice->title, sizeof(notice->title), "rank 0 of %s is behind", evil);
	snprintf(notice->text, sizeof(notice->text), "<script>alert(4)</script>");
	snprintf(notice->hint, sizeof(notice->hint), "ringside ps '<u>x</u>'");
	verdict_title(scene_verdict(scene, VERDICT_STUCK, 1, 1, 9), "%s is stuck", evil);
	verdict_evidence(&scene->live.verdicts.list[0], "<script>alert(5)</script>");
	verdict_missing(&scene->live.verdicts.list[0], "<img src=x onerror=alert(6)>");
	verdict_advice(&scene->live.verdicts.list[0], "$ ringside ps '<u>y</u>'");
}

static inline void scene_many(struct live_scene *scene)
{
	char name[32];

	for (int i = 0; i < 8; i++) {
		struct recording_process *process = scene_process(scene, "moe", i, 8);

		for (uint64_t c = 0; c < 100; c++) {
			snprintf(name, sizeof(name), "expert group %02d", (int)c);
			scene_comm(process, 0x5000 + c, name, i, 8, 1);
		}
	}
	scene_join(scene);
	scene->live.elapsed_ns = 1000000000;
	for (uint32_t i = 0; i < scene->live.job.comm_count; i++)
		scene_course(scene, i,
			     &(struct scene_course){ 40 + i, 90e9 + i * 5e8, 0.05, 0.001 + i * 1e-5,
						     300, 0, i },
			     NULL);
	for (uint32_t i = 0; i < scene->live.job.seat_count; i += 5)
		scene_flight(scene, i, OP_ALL_TO_ALL, 100 + i, 1500000000 + i * 1000000);
}

/* More ranks than lines that can be distinguished or rows that can be read. */
static inline void scene_crowd(struct live_scene *scene)
{
	double waits[72];

	for (int i = 0; i < 72; i++) {
		scene_comm(scene_process(scene, "crowd", i, 72), 0x6000, "all", i, 72, 9);
		waits[i] = i == 7 ? 0.01 : 0.2 + 0.002 * i;
	}
	scene_join(scene);
	scene->live.elapsed_ns = 1000000000;
	scene_course(scene, 0, &(struct scene_course){ 12, 31e9, 0.4, 0.27, 300, 0, 1 }, waits);
	for (uint32_t i = 0; i < scene->live.job.seat_count; i++)
		scene_flight(scene, i, OP_REDUCE_SCATTER, 500, 1200000000 + i * 1000000);
}

/* Everything whose text may be long, is; numbers, too. */
static inline void scene_wide(struct live_scene *scene)
{
	char name[96];

	memset(name, 'W', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (int i = 0; i < 2; i++) {
		struct recording_process *process =
			scene_process(scene, name, 1000000 + i, 2000000);

		scene_comm(process, 0xabc, name, 1000000 + i, 2000000, 250000)->counts.issued =
			UINT64_C(123456789012345);
		process->lost[LOST_QUOTA] = UINT64_C(9876543210987);
		process->pid = 4194304;
	}
	scene_join(scene);
	scene->live.elapsed_ns = 1000000000;
	scene_course(scene, 0, &(struct scene_course){ 123456, 9.87e14, 64.0, 0.9999, 300, 0, 1 },
		     NULL);
	scene_flight(scene, 0, OP_ALL_REDUCE, UINT64_C(123456789012345), UINT64_C(987654321000000));
	scene->live.seats[0].wait_count = 0;
	scene_wait(&scene->live.seats[0], FLIGHT_SEND_GPU, 1999999, 0x5555555555555555);
	snprintf(scene_notice(scene, LIVE_HANG, 0, 0, 987654)->title, 120, "%s%.20s", name, name);
	memset(scene->notices[0].text, 'M', sizeof(scene->notices[0].text) - 1);
	memset(scene->notices[0].hint, 'm', sizeof(scene->notices[0].hint) - 1);
	memcpy(scene->notices[0].hint, "ringside ps ", 12);
	verdict_title(scene_verdict(scene, VERDICT_NETWORK_STUCK, 0, 0, 987654), "%s%s", name,
		      name);
	for (int i = 0; i < 5; i++)
		verdict_evidence(&scene->live.verdicts.list[0], "%s%s%s", name, name, name);
	verdict_missing(&scene->live.verdicts.list[0], "%s%s%s", name, name, name);
	verdict_advice(&scene->live.verdicts.list[0], "$ ringside ps %s%s", name, name);
	scene_notice(scene, LIVE_BEHIND, 0, 0, 7)->text[0] = 'M';
	memset(scene->notices[1].text, 'M', sizeof(scene->notices[1].text) - 1);
}

static inline void live_scene_make(struct live_scene *scene, const char *name)
{
	memset(scene, 0, sizeof(*scene));
	if (strcmp(name, "quiet") == 0) {
		scene_two_jobs(scene);
		scene_quiet_courses(scene, NULL);
	} else if (strcmp(name, "fresh") == 0) {
		scene_two_jobs(scene);
	} else if (strcmp(name, "straggler") == 0) {
		scene_straggler(scene);
	} else if (strcmp(name, "hang") == 0) {
		scene_hang(scene);
	} else if (strcmp(name, "hostile") == 0) {
		scene_hostile(scene);
	} else if (strcmp(name, "many") == 0) {
		scene_many(scene);
	} else if (strcmp(name, "crowd") == 0) {
		scene_crowd(scene);
	} else if (strcmp(name, "wide") == 0) {
		scene_wide(scene);
	} else {
		scene_join(scene);
	}
}

#endif
