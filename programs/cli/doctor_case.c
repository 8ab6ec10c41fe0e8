#include "programs/cli/doctor_case.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/text.h"
#include "doctor/prom.h"
#include "programs/cli/cli_errors.h"
#include "programs/cli/cli_memory.h"

/* ---- reading --------------------------------------------------------------------------------- */

static int read_files(struct doctor_case *look)
{
	const struct doctor_options *options = look->options;
	unsigned int flags = options->path_count > 0 ? RECORDING_WITH_TRACES : 0;

	for (size_t i = 0; i < options->path_count; i++)
		cli_input_path(&look->input, options->paths[i]);
	if (options->path_count == 0)
		text_copy(look->from, sizeof(look->from), "the regions of this machine");
	else if (options->path_count == 1)
		text_copy(look->from, sizeof(look->from), options->paths[0]);
	else
		text_format(look->from, sizeof(look->from), "%s and %zu more", options->paths[0],
			    options->path_count - 1);
	return cli_input_read(&look->input, flags);
}

static bool has_ranks(const struct doctor_options *options)
{
	return options->path_count > 0 || options->has_agents || options->prometheus != NULL ||
	       options->log_count == 0;
}

static int read_all(struct doctor_case *look)
{
	const struct doctor_options *options = look->options;
	int code = 0;

	if (options->log_count > 0)
		code = doctor_read_logs(look);
	if (code != 0 || !has_ranks(options))
		return code;
	if (options->has_agents)
		return doctor_read_agents(look);
	return options->prometheus ? doctor_read_prometheus(look) : read_files(look);
}

/* Nothing is recorded, and nothing else is wrong: one line, and no verdict. */
static int check_emptiness(const struct doctor_case *look)
{
	const struct recording *recording = &look->input.recording;

	if (recording->count > 0 || !has_ranks(look->options) || look->source_count > 0)
		return 0;
	/* What is not there yet may come. */
	if (look->options->is_watch)
		return 0;
	if (look->has_log && look->options->path_count == 0)
		return 0;
	if (recording->trouble_count == 0 && look->options->path_count == 0)
		return cli_error("nothing is recorded on this machine; 'ringside run' records, "
				 "--agents asks other machines");
	cli_input_complain(&look->input, false);
	return CLI_EXIT_TROUBLE;
}

/* A bundle that was made through agents says who of them did not answer. */
static void read_notes(struct doctor_case *look)
{
	size_t count;

	if (agent_notes_read(&look->notes, &look->input.recording) != OK)
		cli_no_memory();
	count = look->notes.agent_count;
	if (look->source_count > 0 || count == 0)
		return;
	look->asked = "agents";
	look->sources = cli_realloc(look->sources, count * sizeof(*look->sources));
	look->problems = cli_realloc(look->problems, count * sizeof(*look->problems));
	look->source_count = count;
	for (size_t i = 0; i < count; i++) {
		const struct agent_asked *agent = &look->notes.agents[i];
		bool is_silent = agent->problem[0] != '\0';

		look->sources[i] = (struct hang_source){ agent->name, is_silent,
							 is_silent ? agent->problem : NULL };
		look->problems[i] = NULL;
	}
}

/* What was in flight where nobody has a region: at the end of traces. */
static int find_flights(struct doctor_case *look)
{
	enum status status = recording_find_flights(&look->input.recording);

	if (status == ERR_NO_SPACE)
		cli_no_memory();
	if (status == OK)
		return 0;
	return cli_error("cannot read what was in flight: %s",
			 status == ERR_SYSTEM ? strerror(errno) : status_text(status));
}

/* ---- the job asked for ----------------------------------------------------------------------- */

/* Processes of one job stand one after the other, see recording_finish(). */
static size_t end_of_job(const struct recording *recording, size_t first)
{
	size_t end = first;

	while (end < recording->count &&
	       strcmp(recording->processes[end]->job, recording->processes[first]->job) == 0)
		end++;
	return end;
}

static bool goes_on(const struct recording *recording, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++)
		if (recording->processes[i]->life == RECORDING_ALIVE ||
		    recording->processes[i]->life == RECORDING_UNKNOWN)
			return true;
	return false;
}

/* Who asks what runs does not want yesterday's job beside it, whose regions are still there. When nothing runs
 * any more, that is what is asked about. */
static void leave_out_dead_jobs(struct doctor_case *look)
{
	struct recording *chosen = &look->asked_for;
	size_t kept = 0, used = strlen(look->from), before = chosen->count;

	if (look->options->path_count > 0 || !goes_on(chosen, 0, chosen->count))
		return;
	for (size_t i = 0, end; i < chosen->count; i = end) {
		bool is_kept;

		end = end_of_job(chosen, i);
		is_kept = goes_on(chosen, i, end);
		/* Never behind the one that is read. */
		for (size_t j = i; j < end && is_kept; j++)
			chosen->processes[kept++] = chosen->processes[j];
	}
	chosen->count = kept;
	if (kept < before)
		text_format(look->from + used, sizeof(look->from) - used,
			    " without %zu processes of jobs that are over", before - kept);
}

static int choose_job(struct doctor_case *look)
{
	const struct recording *all = &look->input.recording;
	const char *name = look->options->job;
	struct recording *chosen = &look->asked_for;

	*chosen = *all;
	chosen->processes =
		cli_realloc(NULL, (all->count + 1) * sizeof(struct recording_process *));
	chosen->count = 0;
	for (size_t i = 0; i < all->count; i++)
		if (name == NULL || strcmp(all->processes[i]->job, name) == 0)
			chosen->processes[chosen->count++] = all->processes[i];
	if (chosen->count == 0 && all->count > 0 && !look->options->is_watch)
		return cli_error("no process of a job '%s' among %zu processes", name, all->count);
	leave_out_dead_jobs(look);
	return 0;
}

/* Of what is read from files: now where a process still runs here, the moment of the newest snapshot, or 0 for
 * the past. */
static uint64_t moment_of_files(const struct recording *recording)
{
	uint64_t newest = 0;

	for (size_t i = 0; i < recording->count; i++) {
		const struct recording_process *process = recording->processes[i];

		if (process->snapshot_wall_ns > newest)
			newest = process->snapshot_wall_ns;
		/* With a snapshot and no region it is looked at as it was then, whatever it does now. */
		if (process->life == RECORDING_ALIVE &&
		    (process->region != NULL || process->snapshot_wall_ns == 0))
			return clock_system_ns(CLOCK_REALTIME);
	}
	return newest;
}

static uint64_t moment_of(const struct doctor_case *look)
{
	if (look->prom && prom_wall_ns(look->prom) > 0)
		return prom_wall_ns(look->prom);
	if (!has_ranks(look->options))
		return 0;
	return look->options->path_count > 0 ? moment_of_files(&look->asked_for)
					     : clock_system_ns(CLOCK_REALTIME);
}

/* ---- all of it ------------------------------------------------------------------------------- */

int doctor_case_make(struct doctor_case *look, const struct doctor_options *options,
		     const struct doctor_yardstick *yardstick, int stop_fd)
{
	int code;

	*look = (struct doctor_case){
		.options = options,
		.yardstick = yardstick,
		.stop_fd = stop_fd,
	};
	cli_input_init(&look->input);
	verdicts_init(&look->verdicts);
	code = read_all(look);
	if (code == 0)
		read_notes(look);
	if (code == 0)
		code = check_emptiness(look);
	if (code == 0 && look->prom == NULL)
		code = find_flights(look);
	if (code == 0)
		code = choose_job(look);
	if (code != 0)
		return code;
	look->wall_ns = moment_of(look);
	doctor_judge(look);
	return 0;
}

void doctor_case_release(struct doctor_case *look)
{
	verdicts_release(&look->verdicts);
	if (look->has_job) {
		scene_release(&look->scene);
		job_release(&look->job);
	}
	prom_free(look->prom);
	for (size_t i = 0; i < look->source_count && look->problems; i++)
		free(look->problems[i]);
	free(look->problems);
	agent_notes_release(&look->notes);
	free(look->sources);
	free(look->asked_for.processes);
	if (look->has_log)
		nccl_log_release(&look->log);
	cli_input_release(&look->input);
}

void doctor_source_problem(struct doctor_case *look, size_t source, const char *text, size_t length)
{
	char *problem = strndup(text, length);

	if (problem == NULL)
		cli_no_memory();
	free(look->problems[source]);
	look->problems[source] = problem;
	look->sources[source].is_silent = true;
	look->sources[source].problem = problem;
}

struct verdict_look doctor_case_look(const struct doctor_case *look)
{
	struct verdict_look shown = {
		.source = look->from[0] ? look->from : NULL,
		.scene = look->has_job ? &look->scene : NULL,
		.job = look->has_job ? &look->job : NULL,
		.wall_ns = look->wall_ns,
		.hang_ns = look->options->hang_ns,
		.sources = look->source_count,
	};

	for (size_t i = 0; i < look->source_count; i++)
		shown.silent += look->sources[i].is_silent;
	for (size_t i = 0; look->has_log && i < look->log.file_count; i++)
		shown.log_lines += look->log.files[i].lines;
	if (look->has_log)
		shown.log_files = look->log.file_count;
	return shown;
}
