#include "programs/sim/sim_engine.h"

#include <stdlib.h>

#include "programs/sim/sim_random.h"

enum { ENQUEUE_NS = 60000, BUCKETS = 1 << 14 };

/* ---- the GPU's queue ------------------------------------------------------------------------- */

static void push_task(struct sim_engine *engine, struct sim_rank *rank, struct sim_task task)
{
	if (rank->task_count == rank->task_room) {
		size_t room = rank->task_room ? 2 * rank->task_room : 16;
		struct sim_task *grown = malloc(room * sizeof(*grown));

		if (grown == NULL) {
			engine->status = ERR_NO_SPACE;
			return;
		}
		for (size_t i = 0; i < rank->task_count; i++)
			grown[i] = rank->tasks[(rank->task_first + i) % rank->task_room];
		free(rank->tasks);
		rank->tasks = grown;
		rank->task_first = 0;
		rank->task_room = room;
	}
	rank->tasks[(rank->task_first + rank->task_count++) % rank->task_room] = task;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void compute(struct sim_engine *engine, int number, const struct sim_task *task)
{
	struct sim_rank *rank = &engine->ranks[number];
	const struct sim_options *options = &engine->job->options;
	uint64_t start_ns = later(rank->compute_ns, task->enqueued_ns);
	uint64_t ns = sim_random_spread(task->ns, options->jitter_permille, options->seed,
					(uint64_t)number << 8 | 2, start_ns);

	rank->compute_ns =
		start_ns + ns * sim_job_compute_permille(engine->job, number, start_ns) / 1000;
}

/* The head of a stream starts as soon as it may. */
static void start_head(struct sim_engine *engine, struct sim_stream *stream)
{
	struct sim_launch *launch = stream->head;

	if (launch == NULL || launch->start_ns != 0)
		return;
	launch->post_ns = later(launch->launch_ns, stream->free_ns);
	if (sim_job_gpu_is_stuck(engine->job, launch->rank, launch->role, SIM_NOT_STARTED,
				 later(launch->ready_ns, stream->free_ns)))
		return;
	launch->start_ns = later(launch->ready_ns, stream->free_ns);
	engine->latest_ns = later(engine->latest_ns, launch->start_ns);
	sim_meet_post(engine, launch);
}

static void push_launch(struct sim_engine *engine, struct sim_rank *rank, struct sim_launch *launch)
{
	struct sim_stream *stream = &rank->streams[launch->role];

	launch->ready_ns = later(rank->compute_ns, launch->launch_ns);
	if (stream->tail)
		stream->tail->next_in_stream = launch;
	else
		stream->head = launch;
	stream->tail = launch;
	stream->pushed++;
	start_head(engine, stream);
}

/* One task; false when it has to wait. */
static bool do_task(struct sim_engine *engine, int number)
{
	struct sim_rank *rank = &engine->ranks[number];
	struct sim_task task;

	if (rank->task_count == 0)
		return false;
	task = rank->tasks[rank->task_first];
	if (task.kind == SIM_WAIT) {
		struct sim_stream *stream = &rank->streams[task.role];
		uint64_t target = stream->pushed > task.behind ? stream->pushed - task.behind : 0;

		if (stream->finished < target)
			return false;
		if (target > 0)
			rank->compute_ns =
				later(rank->compute_ns, stream->ends_ns[(target - 1) % SIM_ENDS]);
	}
	rank->task_first = (rank->task_first + 1) % rank->task_room;
	rank->task_count--;
	if (task.kind == SIM_COMPUTE)
		compute(engine, number, &task);
	else if (task.kind != SIM_WAIT)
		push_launch(engine, rank, task.launch);
	return true;
}

/* ---- the host -------------------------------------------------------------------------------- */

/* Is this iteration run? The first rank decides; false when it has not yet. */
static bool decide_iteration(struct sim_engine *engine, int number, uint64_t iteration)
{
	const struct sim_options *options = &engine->job->options;
	struct sim_rank *rank = &engine->ranks[number];

	if (iteration <= engine->iterations_decided || engine->iterations_end != UINT64_MAX)
		return true;
	if (number != 0) {
		rank->is_waiting_for_iteration = true;
		return false;
	}
	if (rank->host_ns >= options->seconds_ns)
		engine->iterations_end = iteration;
	else
		engine->iterations_decided = iteration;
	for (int i = 1; i < engine->job->world; i++)
		if (engine->ranks[i].is_waiting_for_iteration)
			sim_engine_list(engine, i);
	return true;
}

/* The program's end: the next iteration, or the job's end. */
static bool next_iteration(struct sim_engine *engine, int number)
{
	struct sim_rank *rank = &engine->ranks[number];

	if (!decide_iteration(engine, number, rank->iteration + 1))
		return false;
	rank->is_waiting_for_iteration = false;
	if (rank->iteration + 1 == engine->iterations_end) {
		rank->end = SIM_FINISHED;
		return false;
	}
	rank->iteration++;
	rank->step = 0;
	return true;
}

/* Faults that keep the host from making this call. */
static bool may_call(struct sim_engine *engine, int number, const struct sim_step *step)
{
	struct sim_rank *rank = &engine->ranks[number];
	const struct sim_fault *fault =
		sim_job_fault(engine->job, SIM_NEVER_ARRIVES, number, rank->host_ns);

	if (rank->host_ns >= sim_job_gone_ns(engine->job, number))
		rank->end = rank->host_ns >= sim_job_killed_ns(engine->job, number) ? SIM_DEAD
										    : SIM_STOPPED;
	else if (fault && (fault->role == -1 || fault->role == step->role))
		rank->end = SIM_STOPPED;
	return rank->end == SIM_GOES_ON;
}

static bool make_call(struct sim_engine *engine, int number, const struct sim_step *step)
{
	struct sim_rank *rank = &engine->ranks[number];
	unsigned int depth = sim_job_programs(engine->job, number)->depth;
	struct sim_launch *launch;

	if (rank->launches >= depth) {
		uint64_t end_ns = rank->launch_ends_ns[(rank->launches - depth) % SIM_ENDS];

		if (end_ns == UINT64_MAX)
			return false;
		rank->host_ns = later(rank->host_ns, end_ns);
	}
	if (!may_call(engine, number, step))
		return false;
	launch = sim_issue(engine, number, step);
	if (launch == NULL)
		return false;
	engine->latest_ns = later(engine->latest_ns, rank->host_ns);
	if (launch->is_unlaunched) {
		rank->end = SIM_STOPPED;
		return false;
	}
	push_task(engine, rank, (struct sim_task){ .kind = step->kind, .launch = launch });
	return true;
}

/* The call at the rank's step, or in place of it; false when the host has to wait, or ends here. */
static bool do_call(struct sim_engine *engine, int number, const struct sim_program *program)
{
	struct sim_rank *rank = &engine->ranks[number];
	const struct sim_step *step = sim_detour_step(engine, number, program);

	if (step && !make_call(engine, number, step))
		return false;
	if (step && !sim_detour_is_done(engine, number)) {
		push_task(engine, rank, (struct sim_task){ .kind = SIM_WAIT, .role = step->role });
		return true;
	}
	rank->step++;
	return true;
}

/* One step; false when the host has to wait. */
static bool do_step(struct sim_engine *engine, int number)
{
	struct sim_rank *rank = &engine->ranks[number];
	const struct sim_programs *programs = sim_job_programs(engine->job, number);
	const struct sim_program *program =
		rank->iteration ? &programs->iteration : &programs->start;
	const struct sim_step *step = &program->steps[rank->step];

	if (rank->end != SIM_GOES_ON || engine->status != OK)
		return false;
	if (rank->step == program->count)
		return next_iteration(engine, number);
	switch (step->kind) {
	case SIM_CALL:
	case SIM_ALL_TO_ALL:
		return do_call(engine, number, program);
	case SIM_SYNC:
		if (rank->task_count != 0)
			return false;
		rank->host_ns = later(rank->host_ns, rank->compute_ns);
		break;
	default:
		push_task(engine, rank,
			  (struct sim_task){ .kind = step->kind,
					     .role = step->role,
					     .behind = step->behind,
					     .ns = step->ns,
					     .enqueued_ns = rank->host_ns });
		rank->host_ns += step->kind == SIM_COMPUTE ? ENQUEUE_NS : 0;
		break;
	}
	rank->step++;
	return true;
}

/* ---- going on -------------------------------------------------------------------------------- */

void sim_engine_list(struct sim_engine *engine, int rank)
{
	if (engine->ranks[rank].is_listed)
		return;
	engine->ranks[rank].is_listed = true;
	engine->list[engine->listed++] = rank;
}

void sim_engine_launch_over(struct sim_engine *engine, struct sim_launch *launch)
{
	struct sim_rank *rank = &engine->ranks[launch->rank];
	struct sim_stream *stream = &rank->streams[launch->role];

	stream->head = launch->next_in_stream;
	if (stream->head == NULL)
		stream->tail = NULL;
	stream->ends_ns[stream->finished++ % SIM_ENDS] = launch->end_ns;
	stream->free_ns = launch->end_ns;
	stream->has_drifted = stream->will_drift;
	rank->launch_ends_ns[launch->index % SIM_ENDS] = launch->end_ns;
	engine->latest_ns = later(engine->latest_ns, launch->end_ns);
	if (launch->previous_of_rank)
		launch->previous_of_rank->next_of_rank = launch->next_of_rank;
	else
		rank->first_open = launch->next_of_rank;
	if (launch->next_of_rank)
		launch->next_of_rank->previous_of_rank = launch->previous_of_rank;
	else
		rank->last_open = launch->previous_of_rank;
	sim_engine_list(engine, launch->rank);
	sim_meet_launch_free(engine, launch);
	start_head(engine, stream);
}

static void go_on(struct sim_engine *engine)
{
	while (engine->listed > 0 && engine->status == OK) {
		int number = engine->list[--engine->listed];

		engine->ranks[number].is_listed = false;
		while (do_step(engine, number) || do_task(engine, number))
			;
	}
}

/* Ranks wait for the first one's word, and it hangs: then they go on, as they would. */
static bool release_waiting(struct sim_engine *engine)
{
	bool has_some = false;

	for (int i = 0; i < engine->job->world; i++) {
		if (!engine->ranks[i].is_waiting_for_iteration)
			continue;
		if (engine->ranks[i].iteration + 1 > engine->iterations_decided)
			engine->iterations_decided = engine->ranks[i].iteration + 1;
		sim_engine_list(engine, i);
		has_some = true;
	}
	return has_some;
}

static void set_end(struct sim_engine *engine)
{
	const struct sim_options *options = &engine->job->options;

	for (int i = 0; i < engine->job->world; i++) {
		engine->latest_ns = later(engine->latest_ns, engine->ranks[i].host_ns);
		if (engine->ranks[i].end != SIM_FINISHED)
			engine->is_hung = true;
	}
	engine->end_ns = engine->latest_ns;
	if (!engine->is_hung)
		return;
	engine->end_ns = options->seconds_ns ? later(options->seconds_ns, engine->latest_ns)
					     : engine->latest_ns + options->hang_ns;
}

enum status sim_engine_run(struct sim_engine *engine)
{
	for (int i = engine->job->world; i-- > 0;)
		sim_engine_list(engine, i);
	do
		go_on(engine);
	while (engine->status == OK && release_waiting(engine));
	set_end(engine);
	return engine->status;
}

enum status sim_engine_init(struct sim_engine *engine, const struct sim_job *job,
			    struct sim_trace *trace)
{
	size_t world = (size_t)job->world;

	*engine = (struct sim_engine){ .job = job, .trace = trace, .iterations_end = UINT64_MAX };
	if (job->options.iterations)
		engine->iterations_end = job->options.iterations + 1;
	engine->ranks = calloc(world, sizeof(*engine->ranks));
	engine->list = malloc(world * sizeof(*engine->list));
	engine->buckets = calloc(BUCKETS, sizeof(*engine->buckets));
	engine->free_meetings = calloc((size_t)job->comm_count + 1, sizeof(*engine->free_meetings));
	if (!engine->ranks || !engine->list || !engine->buckets || !engine->free_meetings) {
		sim_engine_release(engine);
		return ERR_NO_SPACE;
	}
	for (int i = 0; i < job->world; i++)
		/* Processes do not start together. */
		engine->ranks[i].host_ns =
			200000000 + sim_random_below(50000000, job->options.seed, 3, (uint64_t)i);
	return OK;
}

static void free_meetings(struct sim_meeting *meeting)
{
	while (meeting) {
		struct sim_meeting *next = meeting->next;

		free(meeting->progress);
		free(meeting);
		meeting = next;
	}
}

static void release_rank(struct sim_engine *engine, struct sim_rank *rank)
{
	while (rank->first_open) {
		struct sim_launch *launch = rank->first_open;

		rank->first_open = launch->next_of_rank;
		sim_meet_launch_free(engine, launch);
	}
	for (int role = 0; role < SIM_ROLES; role++)
		free(rank->streams[role].peers);
	free(rank->tasks);
}

void sim_engine_release(struct sim_engine *engine)
{
	for (int i = 0; engine->ranks && i < engine->job->world; i++)
		release_rank(engine, &engine->ranks[i]);
	for (int i = 0; engine->buckets && i < BUCKETS; i++)
		free_meetings(engine->buckets[i]);
	for (int i = 0; engine->free_meetings && i <= engine->job->comm_count; i++)
		free_meetings(engine->free_meetings[i]);
	while (engine->free_calls) {
		struct sim_call *call = engine->free_calls;

		engine->free_calls = call->next;
		free(call);
	}
	while (engine->free_launches) {
		struct sim_launch *launch = engine->free_launches;

		engine->free_launches = launch->next_of_rank;
		free(launch);
	}
	free(engine->ranks);
	free(engine->list);
	free(engine->buckets);
	free(engine->free_meetings);
	*engine = (struct sim_engine){ 0 };
}
