/* One moment of a job, before anybody is blamed: who lives, what each rank is in and since when, which communicators are
 * stuck. All of it is compared. */
#include "common/attributes.h"
#include "doctor/doctor.h"
#include "doctor/hang_internal.h"
#include "tests/tap.h"
#include "tests/unit/doctor/hang_stage.h"

enum { CALLS_ALONE = 1 << 1 }; /* comm_info.mask: Coll events, no kernel channels */

static struct hang_stage stage;
static struct expected_text found;

static double in_s(uint64_t ns)
{
	return ns == UINT64_MAX ? -1 : (double)ns / 1e9;
}

static void put_scene(const char *what, bool is_guess)
{
	static const char *const lives[] = { "runs", "stopped", "dead", "ended" };
	static const char *const presences[] = { "in nothing", "issued", "launched", "unsure",
						 "inside" };
	static const char *const levels[] = { "moves", "pauses", "hangs" };
	static const char *const unjudged[] = { "", ", all called", ", not busy",
						", none started" };
	struct hang_scene scene;
	const struct job *job = &stage.job;

	for (size_t i = 0; i < stage.recording.count; i++)
		qsort(stage_rank(&stage, (int)i)->flights, stage_rank(&stage, (int)i)->flight_count,
		      sizeof(struct recording_flight), stage_by_comm);
	poison_processes(&stage.recording);
	if (job_make(&stage.job, &stage.recording) != OK)
		abort();
	poison_job(job);
	if (hang_scene_make(&scene, job, &stage.options, is_guess) != OK)
		abort();
	unpoison_processes(&stage.recording);
	expected_put(&found, "=== %s\n", what);
	for (size_t p = 0; p < job->recording->count; p++) {
		const struct hang_process *of = &scene.processes[p];

		expected_put(&found, "process %zu: %s%s, of %u, lag %.3f s%s%s%s\n", p,
			     lives[of->life], of->is_dead_for_sure ? " for sure" : "",
			     of->component, in_s(of->lag_ns), of->is_past ? ", past" : "",
			     of->dead_wall_ns != 0 ? ", all dead" : "",
			     of->gone != HANG_NOBODY ? ", one is gone" : "");
	}
	for (uint32_t s = 0; s < job->seat_count; s++) {
		const struct hang_seat *of = &scene.seats[s];
		char front[64] = "";

		if (of->front != NULL)
			snprintf(front, sizeof(front), " %s #%llu,",
				 op_function_name(of->front->op.function),
				 (unsigned long long)of->front->op.match);
		expected_put(
			&found,
			"rank %d of %s: %s,%s for %.3f s, in it %.3f s, still %.3f s%s%s%s%s\n",
			job->seats[s].comm_rank, job->comms[job->seats[s].comm].label,
			presences[of->presence], front, in_s(of->age_ns), in_s(of->in_ns),
			in_s(of->still_ns), of->is_pair ? ", pair" : "",
			of->is_over ? ", over" : "", of->is_blind ? ", blind" : "",
			of->is_by_calls ? ", by calls" : "");
	}
	for (uint32_t c = 0; c < job->comm_count; c++) {
		const struct hang_match *of = &scene.matches[c];

		expected_put(&found, "%s: %s%s%s%s%s", job->comms[c].label, levels[of->level],
			     unjudged[of->unjudged], of->is_resting ? ", resting" : "",
			     of->is_overdue ? ", overdue" : "",
			     of->is_by_calls ? ", by calls" : "");
		if (of->is_collective)
			expected_put(&found, ", #%llu%s, %u inside, in it %.3f s",
				     (unsigned long long)of->match,
				     of->is_replay ? " replayed" : "", of->inside, in_s(of->in_ns));
		expected_put(&found, ", still %.3f s, shows %u, all called #%lld\n",
			     in_s(of->still_ns), scene.shows[c],
			     scene.least[c] == UINT64_MAX ? -1 : (long long)scene.least[c]);
	}
	hang_scene_release(&scene);
	stage_end(&stage);
}

static struct recording_flight *call(int rank, int comm, uint64_t match, uint8_t state,
				     uint64_t ago_s)
{
	return stage_call(&stage, rank, comm, OP_ALL_REDUCE, match, state, ago_s * SECOND);
}

static void make_blind(int rank, int comm)
{
	struct comm_info *info = &stage_rank(&stage, rank)->comms[comm - 1].info;

	info->flags = 0;
	info->mask = CALLS_ALONE;
	info->interface = 4;
}

/* ---- what ranks are in --------------------------------------------------------------------------------- */

static void test_presence(void)
{
	stage_begin(&stage, 6, 3);
	for (int i = 0; i < 6; i++)
		call(i, 1, 1, OP_DONE, 99);
	call(0, 1, 2, OP_RUNNING, 60);
	call(1, 1, 2, OP_LAUNCHED, 50);
	call(2, 1, 2, OP_ISSUED, 40);
	call(3, 1, 2, OP_RUNNING, 30)->op.active_ns = NOW_NS - 20 * SECOND;
	call(4, 1, 2, OP_RUNNING, 25)->op.kernels_started = 0;
	put_scene("inside, launched, issued, inside for less, launched, in nothing", false);

	stage_begin(&stage, 3, 1);
	for (int i = 0; i < 3; i++)
		call(i, 1, (uint64_t)(4 - i), OP_RUNNING, 60);
	put_scene("ranks that are in different collectives", false);

	stage_begin(&stage, 3, 1);
	call(0, 1, 7, OP_RUNNING, 60)->op.flags = OP_FLAG_REPLAY;
	call(1, 1, 5, OP_RUNNING, 50)->op.flags = OP_FLAG_REPLAY;
	call(2, 1, 9, OP_RUNNING, 40);
	put_scene("graph replays, and a call", false);

	stage_begin(&stage, 3, 1);
	stage_comm(&stage, 0x200, "tp", 1, 2, 1, 2);
	stage_call(&stage, 0, 1, OP_SEND, 1, OP_RUNNING, 60 * SECOND)->op.peer = 1;
	stage_call(&stage, 1, 1, OP_RECV, 1, OP_RUNNING, 50 * SECOND)->op.peer = 0;
	stage_call(&stage, 1, 2, OP_ALL_REDUCE, 1, OP_RUNNING, 40 * SECOND);
	stage_call(&stage, 2, 2, OP_ALL_REDUCE, 1, OP_RUNNING, 45 * SECOND);
	put_scene("a Send, a Recv and a second communicator", false);

	stage_begin(&stage, 2, 1);
	stage_rank(&stage, 0)->comms[0].info.init_ns = 0;
	stage_rank(&stage, 1)->comms[0].info.flags |= COMM_FLAG_FINALIZED;
	put_scene("nothing was called, and one communicator was closed", false);
}

/* Operations before a finished one are over. Sends and Recvs of one launch end in any order. */
static void test_passed(void)
{
	stage_begin(&stage, 2, 1);
	for (int i = 0; i < 2; i++) {
		call(i, 1, 1, OP_RUNNING, 60);
		call(i, 1, 2, OP_DONE, 50);
		call(i, 1, 3, OP_RUNNING, 40);
	}
	put_scene("the first has no end, but the second has", false);

	stage_begin(&stage, 2, 1);
	for (int i = 0; i < 4; i++) {
		struct recording_flight *flight = stage_call(
			&stage, 0, 1, OP_SEND, 1, i == 1 ? OP_DONE : OP_RUNNING, 60 * SECOND);

		flight->op.peer = 1;
		flight->op.launch_ns = NOW_NS - (uint64_t)(i == 0 ? 61 : 60) * SECOND;
	}
	put_scene("Sends of one launch, of which the second is over, and one before it", false);
}

/* A ring in which a rank sends its own data first: it has sent nothing, so its kernel has not started. */
static void test_gives_nothing(void)
{
	for (int what = 0; what < 5; what++) {
		static const char *const names[] = { "it gives nothing", "it has sent something",
						     "not a ring", "no data has arrived",
						     "one way only" };
		struct recording_flight *flight;

		stage_begin(&stage, 3, 1);
		for (int i = 0; i < 3; i++) {
			stage_rank(&stage, i)->comms[0].info.flags = COMM_FLAG_SEES_PROXIES;
			flight = call(i, 1, 1, OP_RUNNING, 60);
			flight->op.kernels_started = 0;
			flight->op.algorithm = what == 2 ? OP_TREE : OP_RING;
			stage_proxy(flight, true, (i + 1) % 3, 0, STEP_SEND_GPU, 59 * SECOND)
				->proxy.done = i == 1 && what != 1 ? 0 : 1;
			if (what == 4 && i == 1)
				continue;
			stage_proxy(flight, false, (i + 2) % 3, 0,
				    what == 3 ? STEP_RECV_NET : STEP_RECV_GPU, 59 * SECOND)
				->proxy.done = i == 1 ? 0 : 1;
		}
		put_scene(names[what], false);
	}
}

/* ---- CUDA events around launches ------------------------------------------------------------------------- */

/* What they show: D over, r reached, n not reached, ? not asked yet; u: none were recorded. A launch a second. */
static void launches(int ranks, const char *const *lines)
{
	stage_begin(&stage, ranks, ranks);
	for (int i = 0; i < ranks; i++) {
		make_blind(i, 1);
		for (uint64_t match = 1; match <= strlen(lines[i]); match++) {
			char how = lines[i][match - 1];
			struct recording_flight *flight =
				call(i, 1, match, how == 'D' ? OP_DONE : OP_LAUNCHED, 60 - match);

			flight->op.kernels_started = 0;
			flight->open_children = how != 'u' && how != 'D';
			flight->op.flags |= how != 'u' ? OP_FLAG_CUDA_EVENT : 0;
			flight->op.flags |= how == 'n' || how == 'r' ? OP_FLAG_SEEN_OPEN : 0;
			flight->op.state = how == 'r' ? OP_RUNNING : flight->op.state;
			if (how == 'r' || how == 'D')
				flight->op.gpu_start_ns = flight->op.active_ns =
					flight->op.launch_ns + 1;
		}
	}
}

static void test_launches(void)
{
	static const struct {
		const char *what, *lines[4];
	} cases[] = {
		{ "launches: one GPU has not reached it", { "Dr", "Dn", "Dr", "Dr" } },
		{ "launches: one was not asked", { "Dr", "D?", "Dr", "Dr" } },
		{ "launches: one is in an earlier one", { "Dnu", "Dru", "DDr", "DDr" } },
		{ "launches: one has not reached a later one", { "Dru", "Dun", "Dru", "Dru" } },
		{ "launches: none has reached it", { "Dun", "Dun", "Dun", "Dun" } },
		{ "launches: one has not, of the others nothing is known",
		  { "Dn", "Du", "Du", "Du" } },
		{ "launches: a later one was reached", { "nur", "nur", "nur", "nur" } },
		{ "launches: one has not called it", { "Dr", "D", "Dr", "Dr" } },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		launches(4, cases[i].lines);
		put_scene(cases[i].what, false);
	}
	launches(4, cases[0].lines);
	stage_rank(&stage, 1)->times_read_ns = NOW_NS - 6 * SECOND;
	put_scene("launches: one GPU does not answer", false);
	launches(4, cases[4].lines);
	for (int i = 0; i < 4; i++)
		stage_rank(&stage, i)->flights[2].op.stream = 7;
	put_scene("launches: the open one is on another stream", false);
	/* Transfers set the time of the first activity, too: then it does not show that the GPU has come. */
	launches(4, cases[0].lines);
	for (int i = 0; i < 4; i++) {
		stage_rank(&stage, i)->flights[1].op.state = OP_RUNNING;
		stage_rank(&stage, i)->flights[1].op.active_ns = NOW_NS - 50 * SECOND;
		stage_rank(&stage, i)->flights[1].op.proxies_started = 1;
		stage_proxy(&stage_rank(&stage, i)->flights[1], false, (i + 3) % 4, 0,
			    STEP_RECV_NET, 50 * SECOND)
			->proxy.done = 0;
	}
	put_scene("launches: with transfers", false);
}

/* ---- by calls alone ------------------------------------------------------------------------------------ */

/* Each rank has called so many collectives, a second apart, the last one this long ago. */
static void blind(int ranks, const uint64_t *calls, const uint64_t *ago_s)
{
	stage_begin(&stage, ranks, ranks);
	for (int i = 0; i < ranks; i++) {
		make_blind(i, 1);
		for (uint64_t match = 1; match <= calls[i]; match++)
			call(i, 1, match, OP_LAUNCHED, ago_s[i] + calls[i] - match);
	}
}

static void test_by_calls(void)
{
	blind(3, (const uint64_t[]){ 8, 7, 9 }, (const uint64_t[]){ 30, 31, 32 });
	put_scene("one rank is behind the others by their calls", false);
	blind(3, (const uint64_t[]){ 8, 8, 8 }, (const uint64_t[]){ 30, 31, 32 });
	put_scene("all made the same calls", false);
	blind(3, (const uint64_t[]){ 8, 8, 8 }, (const uint64_t[]){ 30, 4, 32 });
	put_scene("all made the same calls, one of them just now", false);
	blind(3, (const uint64_t[]){ 8, 8, 8 }, (const uint64_t[]){ 30, 31, 32 });
	stage_rank(&stage, 1)->process_state = 'T';
	put_scene("all made the same calls, and one is stopped", false);
	blind(3, (const uint64_t[]){ 8, 7, 8 }, (const uint64_t[]){ 30, 31, 32 });
	stage_rank(&stage, 1)->life = RECORDING_KILLED;
	put_scene("the one that is behind is dead", false);

	/* A pause of 10 s is usual: 29 s are not much longer, 31 s are. */
	for (uint64_t ago_s = 29; ago_s < 32; ago_s++) {
		stage_begin(&stage, 2, 2);
		for (int i = 0; i < 2; i++) {
			make_blind(i, 1);
			call(i, 1, 1, OP_LAUNCHED, ago_s + 12);
			call(i, 1, 2, OP_LAUNCHED, ago_s + 11);
			call(i, 1, 3, OP_LAUNCHED, ago_s + 1);
			if (i == 0)
				call(i, 1, 4, OP_LAUNCHED, ago_s);
		}
		put_scene(ago_s == 29	? "29 s after pauses of 10 s"
			  : ago_s == 30 ? "30 s after pauses of 10 s"
					: "31 s after pauses of 10 s",
			  false);
	}
	/* The last calls of these ranks were elsewhere. */
	blind(2, (const uint64_t[]){ 3, 3 }, (const uint64_t[]){ 30, 30 });
	stage_comm(&stage, 0x200, "tp", 0, 2, 1, 2);
	for (int i = 0; i < 2; i++) {
		make_blind(i, 2);
		call(i, 2, 1, OP_LAUNCHED, 25);
	}
	put_scene("all made the same calls on two communicators", false);
	/* A Send whose Recv was not called. */
	stage_begin(&stage, 2, 2);
	for (int i = 0; i < 2; i++)
		make_blind(i, 1);
	for (int n = 0; n < 2; n++) {
		struct recording_flight *flight =
			stage_call(&stage, 0, 1, OP_SEND, (uint64_t)n + 1, OP_LAUNCHED,
				   (uint64_t)(60 - n) * SECOND);

		flight->op.peer = 1;
	}
	stage_call(&stage, 1, 1, OP_RECV, 1, OP_LAUNCHED, 60 * SECOND)->op.peer = 0;
	put_scene("two Sends, and one Recv", false);
}

/* No GPU has started what all ranks launched: for three times the limit, and their pauses are known. */
static void test_none_started(void)
{
	static const struct {
		const char *what;
		uint64_t ago_s;
		int calls;
		uint8_t last;
	} cases[] = {
		{ "no GPU has started it for 59 s", 59, 3, OP_LAUNCHED },
		{ "no GPU has started it for 60 s", 60, 3, OP_LAUNCHED },
		{ "too few calls are known", 60, 2, OP_LAUNCHED },
		{ "one rank's was not launched", 60, 3, OP_ISSUED },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		stage_begin(&stage, 3, 3);
		for (int rank = 0; rank < 3; rank++) {
			for (int n = 0; n < cases[i].calls; n++)
				call(rank, 1, (uint64_t)n + 1, OP_DONE,
				     cases[i].ago_s + (uint64_t)(cases[i].calls - n));
			call(rank, 1, (uint64_t)cases[i].calls + 1,
			     rank == 2 ? cases[i].last : OP_LAUNCHED,
			     cases[i].ago_s + (uint64_t)(rank == 0));
		}
		put_scene(cases[i].what, false);
	}
}

/* ---- lives --------------------------------------------------------------------------------------------- */

static void test_lives(void)
{
	static const struct {
		const char *what;
		enum recording_life lives[4];
		char state;		/* of the last */
		uint64_t earlier_ns[4]; /* its recording ends */
		bool is_guess, only_living;
	} cases[] = {
		{ .what = "alive, killed, ended, stopped",
		  .lives = { RECORDING_ALIVE, RECORDING_KILLED, RECORDING_ENDED, RECORDING_ALIVE },
		  .state = 'T' },
		{ .what = "all killed, one of them earlier",
		  .lives = { RECORDING_KILLED, RECORDING_KILLED, RECORDING_KILLED,
			     RECORDING_KILLED },
		  .earlier_ns = { 0, 0, 20 * SECOND, 0 } },
		{ .what = "all killed at once",
		  .lives = { RECORDING_KILLED, RECORDING_KILLED, RECORDING_KILLED,
			     RECORDING_KILLED } },
		{ .what = "unknown, one ends 2 s earlier, one a moment more, one 20 s",
		  .lives = { RECORDING_UNKNOWN, RECORDING_UNKNOWN, RECORDING_UNKNOWN,
			     RECORDING_UNKNOWN },
		  .earlier_ns = { 0, 2 * SECOND, 2 * SECOND + 1000000, 20 * SECOND } },
		{ .what = "killed, and some ended",
		  .lives = { RECORDING_ENDED, RECORDING_KILLED, RECORDING_ENDED, RECORDING_ENDED },
		  .state = 't' },
		{ .what = "all killed, and only living ones are asked for",
		  .lives = { RECORDING_KILLED, RECORDING_KILLED, RECORDING_KILLED,
			     RECORDING_KILLED },
		  .only_living = true },
		{ .what = "all killed, a guess",
		  .lives = { RECORDING_KILLED, RECORDING_KILLED, RECORDING_KILLED,
			     RECORDING_KILLED },
		  .is_guess = true },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		stage_begin(&stage, 4, 2);
		for (int rank = 0; rank < 4; rank++) {
			struct recording_process *process = stage_rank(&stage, rank);

			call(rank, 1, 1, OP_DONE, 99);
			process->life = cases[i].lives[rank];
			process->counts_ns -= cases[i].earlier_ns[rank];
		}
		stage_rank(&stage, 3)->process_state = cases[i].state;
		stage.options.only_living = cases[i].only_living;
		put_scene(cases[i].what, cases[i].is_guess);
	}
}

/* Processes belong together if communicators connect them. Without a hash, the job's name has to suffice. */
static void test_components(void)
{
	for (int has_hash = 0; has_hash < 2; has_hash++) {
		stage_begin(&stage, 6, 2);
		for (int i = 0; i < 6; i++) {
			struct comm_info *info = &stage_rank(&stage, i)->comms[0].info;

			info->hash = has_hash ? 0x100 + (uint64_t)(i / 2) : 0;
			info->rank = i % 2;
			info->nranks = 2;
			if (i >= 4)
				snprintf(stage_rank(&stage, i)->job,
					 sizeof(stage_rank(&stage, i)->job), "another");
		}
		if (has_hash)
			stage_comm(&stage, 0x500, "bridge", 1, 2, 1, 2);
		stage_rank(&stage, 3)->life = RECORDING_KILLED;
		put_scene(has_hash ? "three pairs, two of which are connected"
				   : "communicators without a hash, of two jobs",
			  false);
	}
}

int main(void)
{
	test_presence();
	test_passed();
	test_gives_nothing();
	test_launches();
	test_by_calls();
	test_none_started();
	test_lives();
	test_components();
	expected_compare(&found, "tests/unit/doctor/expected/hang_scene.txt");
	return tap_done();
}
