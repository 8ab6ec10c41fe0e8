/*
 * Who lives. On a machine where the processes run the system knows. Of what was left behind only the ends
 * of the recordings are known, and these are compared among processes that belong together: those that
 * share communicators, directly or through others. Two jobs in one directory have nothing to do with each
 * other, and neither have two attempts of the same job.
 */
#include <stdlib.h>

#include "doctor/hang_scene.h"

/* Clocks of hosts differ by so much. */
#define CLOCKS_NS (2 * HANG_SECOND_NS)

uint64_t hang_now_ns(const struct recording_process *process)
{
	uint64_t now_ns;

	if (process->life == RECORDING_ALIVE && recording_now(process, &now_ns))
		return now_ns;
	now_ns = flight_last_ns(process);
	return process->ended_ns > now_ns ? process->ended_ns : now_ns;
}

/* ---- components: a forest in hang_process.component -------------------------------------------- */

static uint32_t root_of(struct hang_process *processes, uint32_t p)
{
	while (processes[p].component != p) {
		processes[p].component = processes[processes[p].component].component;
		p = processes[p].component;
	}
	return p;
}

static void join(struct hang_process *processes, uint32_t one, uint32_t other)
{
	uint32_t a = root_of(processes, one), b = root_of(processes, other);

	if (a < b)
		processes[b].component = a;
	else
		processes[a].component = b;
}

/* Communicators without a hash are joined with nobody: there the job's name has to do. */
static void join_nameless(struct hang_scene *scene, uint32_t *first_of_group)
{
	const struct job *job = scene->job;

	for (size_t c = 0; c < job->comm_count; c++) {
		const struct job_comm *comm = &job->comms[c];
		uint32_t process;

		if (comm->hash != 0 || comm->seat_count == 0)
			continue;
		process = job->seats[comm->seats[0]].process;
		if (first_of_group[comm->group] == HANG_NOBODY)
			first_of_group[comm->group] = process;
		join(scene->processes, first_of_group[comm->group], process);
	}
}

static enum status find_components(struct hang_scene *scene)
{
	const struct job *job = scene->job;
	uint32_t *first_of_group = malloc((job->group_count + 1) * sizeof(*first_of_group));

	if (first_of_group == NULL)
		return ERR_NO_SPACE;
	for (size_t g = 0; g < job->group_count; g++)
		first_of_group[g] = HANG_NOBODY;
	for (uint32_t p = 0; p < job->recording->count; p++)
		scene->processes[p].component = p;
	for (size_t c = 0; c < job->comm_count; c++)
		for (uint32_t i = 1; i < job->comms[c].seat_count; i++)
			join(scene->processes, job->seats[job->comms[c].seats[0]].process,
			     job->seats[job->comms[c].seats[i]].process);
	join_nameless(scene, first_of_group);
	free(first_of_group);
	/* Roots are the smallest of their component: one pass makes all of them direct. */
	for (uint32_t p = 0; p < job->recording->count; p++)
		scene->processes[p].component = root_of(scene->processes, p);
	return OK;
}

/* ---- lives ------------------------------------------------------------------------------------- */

struct together {
	uint64_t end_wall_ns;
	bool is_any_alive;
	bool is_any_ended; /* cleanly */
	bool is_end_known; /* of one at least */
};

/* A region without a trace does not say when its process died: its last call may be long before. */
static bool is_end_known(const struct recording_process *process)
{
	return process->region == NULL && process->counts_ns != 0;
}

static void note_end(struct together *together, const struct recording_process *process,
		     const struct hang_process *of)
{
	together->is_end_known |= is_end_known(process);
	together->is_any_alive |= process->life == RECORDING_ALIVE;
	together->is_any_ended |= process->life == RECORDING_ENDED;
	if (of->end_wall_ns > together->end_wall_ns)
		together->end_wall_ns = of->end_wall_ns;
}

static void judge(const struct recording_process *process, struct hang_process *of,
		  const struct together *together, uint64_t hang_ns)
{
	bool ends_early = of->lag_ns >= hang_ns && is_end_known(process);

	if (process->life == RECORDING_ENDED) {
		of->life = HANG_ENDED;
	} else if (process->life == RECORDING_KILLED &&
		   (together->is_any_alive || together->is_any_ended || ends_early)) {
		of->life = HANG_DEAD;
		of->is_dead_for_sure = true;
	} else if (process->life == RECORDING_UNKNOWN && ends_early) {
		of->life = HANG_DEAD;
	} else if (process->process_state == 'T' || process->process_state == 't') {
		of->life = HANG_STOPPED;
	}
}

static void take_process(struct hang_scene *scene, uint32_t p)
{
	const struct recording_process *process = scene->job->recording->processes[p];
	struct hang_process *of = &scene->processes[p];
	const struct hang_options *options = scene->options;

	of->now_ns = options && options->now_ns ? options->now_ns[p] : hang_now_ns(process);
	if (of->now_ns == 0 || !recording_wall_ns(process, of->now_ns, &of->end_wall_ns))
		of->end_wall_ns = 0;
}

enum status hang_lives(struct hang_scene *scene)
{
	const struct recording *recording = scene->job->recording;
	struct together *together = calloc(recording->count + 1, sizeof(*together));
	enum status status;

	if (together == NULL)
		return ERR_NO_SPACE;
	status = find_components(scene);
	for (uint32_t p = 0; p < recording->count && status == OK; p++) {
		take_process(scene, p);
		note_end(&together[scene->processes[p].component], recording->processes[p],
			 &scene->processes[p]);
	}
	for (uint32_t p = 0; p < recording->count && status == OK; p++) {
		struct hang_process *of = &scene->processes[p];
		const struct together *with = &together[of->component];

		if (of->end_wall_ns != 0 && recording->processes[p]->life != RECORDING_ALIVE &&
		    with->end_wall_ns - of->end_wall_ns > CLOCKS_NS)
			of->lag_ns = with->end_wall_ns - of->end_wall_ns;
		judge(recording->processes[p], of, with, scene->hang_ns);
		of->is_past = scene->options && scene->options->only_living && !with->is_any_alive;
		if (scene->is_guess) {
			of->is_past =
				with->is_any_alive || with->is_any_ended || with->is_end_known;
			of->lag_ns += HANG_GUESS_NS;
		}
		of->gone = HANG_NOBODY;
		if ((of->life == HANG_DEAD || of->life == HANG_STOPPED) &&
		    scene->processes[of->component].gone == HANG_NOBODY)
			scene->processes[of->component].gone = p;
	}
	free(together);
	return status;
}
