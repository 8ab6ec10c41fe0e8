/* What a simulated job did, as text and JSON; the list of workloads and faults. */
#include "sim/sim_job.h"

#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "output/json.h"
#include "output/table.h"

enum status sim_result_init(struct sim_result *result, const struct sim_job *job)
{
	*result = (struct sim_result){ 0 };
	result->ranks = calloc((size_t)job->world, sizeof(*result->ranks));
	return result->ranks ? OK : ERR_NO_SPACE;
}

void sim_result_release(struct sim_result *result)
{
	free(result->ranks);
	*result = (struct sim_result){ 0 };
}

static const char *sim_result_end_name(enum sim_result_end end)
{
	static const char *const names[] = { "finished", "hung",	"stopped",
					     "killed",	 "interrupted", "failed" };

	return names[end];
}

/* ---- text ------------------------------------------------------------------------------------ */

static uint64_t calls_sum(const struct sim_job *job, const struct sim_result *result,
			  bool is_in_flight)
{
	uint64_t total = 0;

	for (int rank = 0; rank < job->world; rank++)
		for (int role = 0; role < SIM_ROLES; role++)
			total += is_in_flight ? result->ranks[rank].in_flight[role]
					      : result->ranks[rank].issued[role];
	return total;
}

static void write_head(struct sink *sink, const struct sim_job *job,
		       const struct sim_result *result, const char *directory)
{
	char ns[UNITS_TEXT], still[UNITS_TEXT], issued[UNITS_TEXT], open[UNITS_TEXT],
		bytes[UNITS_TEXT];

	sink_format(sink, "%s on %d x %d GPUs, seed %llu: ",
		    sim_workload_page(job->options.workload)->name, job->options.nodes,
		    job->options.gpus, (unsigned long long)job->options.seed);
	if (result->end == SIM_RESULT_HUNG)
		sink_format(sink, "hung since %s, observed until %s\n",
			    units_duration(still, result->still_ns),
			    units_duration(ns, result->ns));
	else
		sink_format(sink, "%s after %s\n", sim_result_end_name(result->end),
			    units_duration(ns, result->ns));
	sink_format(sink, "%s operations, %s in flight",
		    units_count(issued, calls_sum(job, result, false)),
		    units_count(open, calls_sum(job, result, true)));
	if (directory && result->bytes)
		sink_format(sink, "; %s in %s", units_bytes(bytes, result->bytes), directory);
	else if (directory)
		sink_format(sink, "; recorded in %s", directory);
	sink_text(sink, "\n");
}

static bool is_same_rank(const struct sim_job *job, const struct sim_result *result, int a, int b)
{
	const struct sim_result_rank *first = &result->ranks[a], *second = &result->ranks[b];

	for (int role = 0; role < SIM_ROLES; role++)
		if (job->members[a][role].comm == -1 && job->members[b][role].comm != -1)
			return false;
	return first->end == second->end &&
	       memcmp(first->issued, second->issued, sizeof(first->issued)) == 0 &&
	       memcmp(first->in_flight, second->in_flight, sizeof(first->in_flight)) == 0;
}

static void write_cell(struct table *table, const struct sim_result_rank *rank, int role)
{
	char issued[UNITS_TEXT], open[UNITS_TEXT];

	if (rank->in_flight[role])
		table_cellf(table, "%s (%s in flight)", units_count(issued, rank->issued[role]),
			    units_count(open, rank->in_flight[role]));
	else
		table_cell(table, units_count(issued, rank->issued[role]));
}

/* Ranks with equal counts share a row. */
static void write_rows(struct table *table, const struct sim_job *job,
		       const struct sim_result *result, const bool *has_role)
{
	for (int rank = 0, last; rank < job->world; rank = last + 1) {
		for (last = rank;
		     last + 1 < job->world && is_same_rank(job, result, rank, last + 1);)
			last++;
		if (last == rank)
			table_cellf(table, "%d", rank);
		else
			table_cellf(table, "%d-%d", rank, last);
		table_cell(table, sim_result_end_name(result->ranks[rank].end));
		for (int role = 0; role < SIM_ROLES; role++)
			if (has_role[role])
				write_cell(table, &result->ranks[rank], role);
	}
}

void sim_result_text(struct sink *sink, const struct sim_job *job, const struct sim_result *result,
		     const char *directory)
{
	struct table_column columns[2 + SIM_ROLES] = { { .title = "RANKS" }, { .title = "END" } };
	bool has_role[SIM_ROLES] = { false };
	size_t count = 2;
	struct table *table;

	write_head(sink, job, result, directory);
	for (int i = 0; i < job->comm_count; i++)
		has_role[job->comms[i].role] = true;
	for (int role = 0; role < SIM_ROLES; role++)
		if (has_role[role])
			columns[count++] = (struct table_column){ .title = sim_role_name(role),
								  .align = TABLE_RIGHT };
	table = table_new(columns, count);
	if (table == NULL)
		return;
	write_rows(table, job, result, has_role);
	sink_text(sink, "operations called per rank and communicator:\n");
	table_write(table, sink, 0);
	table_free(table);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_comm(struct json *json, const struct sim_job *job,
		     const struct sim_result_rank *result, int rank, int role)
{
	const struct sim_member *member = &job->members[rank][role];
	const struct sim_comm *comm = &job->comms[member->comm];

	json_object(json);
	json_put_string(json, "name", comm->name);
	json_put_hex(json, "hash", comm->hash);
	json_put_signed(json, "rank", member->rank);
	json_put_signed(json, "nranks", comm->nranks);
	json_put_signed(json, "nnodes", comm->nnodes);
	json_put_unsigned(json, "issued", result->issued[role]);
	json_put_unsigned(json, "hidden", result->hidden[role]);
	json_put_unsigned(json, "in_flight", result->in_flight[role]);
	json_end(json);
}

static void put_rank(struct json *json, const struct sim_job *job, const struct sim_result *result,
		     int rank)
{
	const struct sim_result_rank *one = &result->ranks[rank];

	json_object(json);
	json_put_signed(json, "rank", rank);
	json_put_string(json, "host", one->host);
	json_put_signed(json, "pid", one->pid);
	json_put_string(json, "end", sim_result_end_name(one->end));
	json_put_array(json, "communicators");
	for (int role = 0; role < SIM_ROLES; role++)
		if (job->members[rank][role].comm != -1)
			put_comm(json, job, one, rank, role);
	json_end(json);
	json_end(json);
}

void sim_result_json(struct sink *sink, const struct sim_job *job, const struct sim_result *result,
		     const char *directory)
{
	const struct sim_options *options = &job->options;
	struct json json;

	json_init(&json, sink);
	json_object(&json);
	json_put_string(&json, "workload", sim_workload_page(options->workload)->name);
	json_put_signed(&json, "nodes", options->nodes);
	json_put_signed(&json, "gpus", options->gpus);
	json_put_unsigned(&json, "seed", options->seed);
	json_put_signed(&json, "release", options->release);
	json_put_signed(&json, "interface", job->interface);
	json_put_bool(&json, "offline", options->is_offline);
	json_put_string(&json, "directory", directory);
	json_put_string(&json, "end", sim_result_end_name(result->end));
	json_put_unsigned(&json, "duration_ns", result->ns);
	json_put_unsigned(&json, "still_ns", result->end == SIM_RESULT_HUNG ? result->still_ns : 0);
	json_put_unsigned(&json, "iterations", result->iterations);
	json_put_unsigned(&json, "operations", calls_sum(job, result, false));
	json_put_unsigned(&json, "in_flight", calls_sum(job, result, true));
	json_put_array(&json, "ranks");
	for (int rank = 0; rank < job->world; rank++)
		put_rank(&json, job, result, rank);
	json_end(&json);
	json_end(&json);
	json_line(&json);
}

/* ---- --list ---------------------------------------------------------------------------------- */

static void list_page(struct sink *sink, const struct sim_fault_page *page, unsigned int width)
{
	sink_format(sink, "\n  %s%s%s\n", page->name, page->keys[0] ? ":" : "", page->keys);
	table_wrap(sink, page->about, "      ", 6, width);
}

void sim_result_list(struct sink *sink, unsigned int width)
{
	char head[96];

	sink_text(sink, "workloads (--workload NAME):\n");
	for (int i = 0; i < SIM_WORKLOADS; i++) {
		const struct sim_workload_page *page = sim_workload_page((enum sim_workload)i);

		sink_format(sink, "\n  %s\n", page->name);
		table_wrap(sink, page->about, "      ", 6, width);
		text_format(head, sizeof(head), "--sizes: %s", page->sizes);
		table_wrap(sink, head, "      ", 6, width);
	}
	sink_text(sink, "\nfaults (--fault KIND:key=value,..., can be repeated):\n");
	for (int i = 0; i < SIM_FAULT_KINDS; i++)
		list_page(sink, sim_fault_page((enum sim_fault_kind)i), width);
	sink_text(sink, "\nnoise of healthy jobs (--noise KIND:key=value,..., can be repeated):\n");
	for (int i = 0; i < SIM_NOISES; i++)
		list_page(sink, sim_noise_page((enum sim_noise_kind)i), width);
	sink_text(sink, "\n");
	table_wrap(
		sink,
		"R, A and B are ranks of the job, T is a time since its start, e.g. 30s or 1.5s, F "
		"is a factor. A fault begins at its own at=, otherwise at --at, otherwise with the "
		"job; it ends at until=, otherwise never.",
		"", 0, width);
}
