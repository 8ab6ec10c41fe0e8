#include "programs/cli/cli_process.h"

#include <inttypes.h>
#include <string.h>

#include "common/op_layout.h"
#include "common/text.h"

const char *cli_process_text(const struct recording_process *process,
			     char text[static CLI_PROCESS_TEXT])
{
	char rank[40] = "process";

	if (process->rank >= 0)
		text_format(rank, sizeof(rank), "rank %" PRId64, process->rank);
	text_format(text, CLI_PROCESS_TEXT, "%s (pid %" PRId64 "%s%s%s%s)", rank, process->pid,
		    process->host[0] ? " on " : "", process->host, process->job[0] ? ", job " : "",
		    process->job);
	return text;
}

void cli_json_number_or_null(struct json *json, const char *key, int64_t number)
{
	if (number == -1)
		json_put_null(json, key);
	else
		json_put_signed(json, key, number);
}

void cli_json_time_or_null(struct json *json, const char *key, uint64_t ns)
{
	if (ns == 0)
		json_put_null(json, key);
	else
		json_put_unsigned(json, key, ns);
}

void cli_json_text_or_null(struct json *json, const char *key, const char *text)
{
	json_put_string(json, key, text[0] ? text : NULL);
}

void cli_process_json(struct json *json, const struct recording_process *process)
{
	cli_json_text_or_null(json, "job", process->job);
	cli_json_number_or_null(json, "rank", process->rank);
	cli_json_text_or_null(json, "host", process->host);
	cli_json_number_or_null(json, "pid", process->pid);
}

size_t cli_process_live_comms(const struct recording_process *process)
{
	size_t live = 0;

	for (size_t i = 0; i < process->comm_count; i++)
		live += !(process->comms[i].info.flags & COMM_FLAG_FINALIZED) &&
			process->comms[i].info.finalize_ns == 0;
	return live;
}

uint64_t cli_process_all_comms(const struct recording_process *process)
{
	uint64_t most = process->comm_count;

	if (process->region)
		return process->region->header.comms_made;
	/* Numbers are never given again: the highest one says how many there were. */
	for (size_t i = 0; i < process->comm_count; i++)
		if (process->comms[i].info.id > most)
			most = process->comms[i].info.id;
	return most;
}

uint64_t cli_process_lost(const struct recording_process *process)
{
	return op_lost_operations(process->lost);
}

void cli_process_gpus(const struct recording_process *process, char *text, size_t size)
{
	uint64_t seen = 0;
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < process->comm_count; i++) {
		int gpu = process->comms[i].info.gpu;

		if (gpu >= 0 && gpu < 64)
			seen |= UINT64_C(1) << gpu;
	}
	for (int gpu = 0; gpu < 64; gpu++) {
		if (!(seen >> gpu & 1))
			continue;
		text_format(text + used, size - used, "%s%d", used ? "," : "", gpu);
		used = strlen(text);
	}
}

const char *cli_comm_text(const struct recording_comm *comm, char text[static CLI_COMM_TEXT])
{
	if (comm == NULL)
		text_copy(text, CLI_COMM_TEXT, "?");
	else if (comm->info.name[0])
		text_copy(text, CLI_COMM_TEXT, comm->info.name);
	else if (comm->info.hash != 0)
		text_format(text, CLI_COMM_TEXT, "0x%016" PRIx64, comm->info.hash);
	else
		text_format(text, CLI_COMM_TEXT, "#%u", comm->info.id);
	return text;
}

void cli_comm_json(struct json *json, uint32_t id, const struct recording_comm *comm)
{
	const struct comm_info unknown = { .rank = -1 };
	const struct comm_info *info = comm ? &comm->info : &unknown;

	json_put_unsigned(json, "comm_id", id);
	if (info->hash != 0)
		json_put_hex(json, "comm_hash", info->hash);
	else
		json_put_null(json, "comm_hash");
	cli_json_text_or_null(json, "comm_name", info->name);
	cli_json_number_or_null(json, "comm_rank", info->rank);
	cli_json_time_or_null(json, "comm_ranks", (uint64_t)(info->nranks > 0 ? info->nranks : 0));
	cli_json_time_or_null(json, "comm_nodes", (uint64_t)(info->nnodes > 0 ? info->nnodes : 0));
}
