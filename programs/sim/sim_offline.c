#include "programs/sim/sim_offline.h"

#include <errno.h>

#include "common/text.h"
#include "programs/sim/sim_engine.h"
#include "programs/sim/sim_trace.h"

static enum sim_result_end end_of(const struct sim_job *job, const struct sim_engine *engine,
				  int rank)
{
	if (engine->ranks[rank].end == SIM_FINISHED)
		return SIM_RESULT_FINISHED;
	if (sim_job_killed_ns(job, rank) <= engine->end_ns)
		return SIM_RESULT_KILLED;
	return engine->ranks[rank].end == SIM_STOPPED ? SIM_RESULT_STOPPED : SIM_RESULT_HUNG;
}

static void fill_result(struct sim_result *result, const struct sim_job *job,
			const struct sim_engine *engine, const struct sim_trace *trace)
{
	result->end = engine->is_hung ? SIM_RESULT_HUNG : SIM_RESULT_FINISHED;
	result->ns = engine->end_ns;
	result->still_ns = engine->latest_ns;
	result->iterations = engine->ranks[0].iteration;
	for (int rank = 0; rank < job->world; rank++) {
		struct sim_result_rank *one = &result->ranks[rank];
		const struct sim_file *file = &trace->files[rank];

		one->end = end_of(job, engine, rank);
		one->pid = file->identity.pid;
		text_copy(one->host, sizeof(one->host), file->identity.host);
		result->bytes += file->bytes;
		for (int role = 0; role < SIM_ROLES; role++) {
			one->issued[role] = engine->ranks[rank].streams[role].numbers;
			one->in_flight[role] = file->in_flight[role];
		}
	}
}

enum status sim_offline_run(const struct sim_job *job, const char *directory,
			    struct sim_result *result, char *failed, size_t size)
{
	struct sim_engine engine = { 0 };
	struct sim_trace trace;
	enum status status = sim_trace_init(&trace, job, directory);
	int error;

	if (status == OK)
		status = sim_engine_init(&engine, job, &trace);
	if (status == OK)
		status = sim_engine_run(&engine);
	if (status == OK)
		status = sim_trace_finish(&trace, &engine);
	if (status == OK)
		fill_result(result, job, &engine, &trace);
	error = errno;
	text_copy(failed, size, trace.failed);
	sim_engine_release(&engine);
	sim_trace_release(&trace);
	errno = error;
	return status;
}
