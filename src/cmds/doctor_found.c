/* A summary of NCCL's logs. Facts that are the same on many ranks are printed once. */
#include "cmds/doctor_case.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/attributes.h"
#include "common/text.h"
#include "output/verdict_show.h"

enum { ROWS_MOST = 24, ROW_BYTES = 200 };

/* Texts with counts, in order of first occurrence. */
struct rows {
	char (*texts)[ROW_BYTES];
	uint64_t *counts;
	size_t count;
	uint64_t left_out;
};

static void add_row(struct rows *rows, uint64_t times, const char *format, ...) PRINTF_LIKE(3, 4);

static void add_row(struct rows *rows, uint64_t times, const char *format, ...)
{
	char text[ROW_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	for (size_t i = 0; i < rows->count; i++)
		if (strcmp(rows->texts[i], text) == 0) {
			rows->counts[i] += times;
			return;
		}
	if (rows->count == ROWS_MOST) {
		rows->left_out++;
		return;
	}
	rows->texts = cli_realloc(rows->texts, (rows->count + 1) * sizeof(*rows->texts));
	rows->counts = cli_realloc(rows->counts, (rows->count + 1) * sizeof(*rows->counts));
	text_copy(rows->texts[rows->count], ROW_BYTES, text);
	rows->counts[rows->count++] = times;
}

static void write_rows(struct sink *sink, const char *title, const char *one, const char *many,
		       struct rows *rows)
{
	char clean[ROW_BYTES * 2];

	for (size_t i = 0; i < rows->count; i++) {
		text_from_field(clean, sizeof(clean), rows->texts[i], strlen(rows->texts[i]));
		sink_format(sink, "%-10s- %s", i == 0 ? title : "", clean);
		sink_format(sink, " (%llu %s)\n", (unsigned long long)rows->counts[i],
			    text_which(rows->counts[i], one, many));
	}
	if (rows->left_out > 0)
		sink_format(sink, "%-10s  and %llu more\n", "", (unsigned long long)rows->left_out);
	free(rows->texts);
	free(rows->counts);
	*rows = (struct rows){ .count = 0 };
}

static void write_processes(struct sink *sink, const struct nccl_log *log)
{
	struct rows rows = { .count = 0 };

	for (size_t i = 0; i < log->process_count; i++)
		if (log->processes[i].version[0] != '\0')
			add_row(&rows, 1, "NCCL %s, built for CUDA %s, driver %d",
				log->processes[i].version, log->processes[i].cuda_version,
				log->processes[i].driver_version);
	write_rows(sink, "version", "process", "processes", &rows);
	for (size_t i = 0; i < log->variable_count; i++)
		add_row(&rows, 1, "%s=%s", log->variables[i].name, log->variables[i].value);
	write_rows(sink, "variables", "process", "processes", &rows);
	for (size_t i = 0; i < log->plugin_count; i++) {
		static const char *const states[] = { "loaded", "not found", "could not be used",
						      "internal" };

		add_row(&rows, 1, "%s %s: %s", log->plugins[i].kind, log->plugins[i].name,
			states[log->plugins[i].state % ARRAY_LENGTH(states)]);
	}
	write_rows(sink, "plugins", "process", "processes", &rows);
}

static void write_network(struct sink *sink, const struct nccl_log *log)
{
	static const char *const gdr[] = { "", ", GPUDirect RDMA off", ", GPUDirect RDMA on" };
	struct rows rows = { .count = 0 };

	for (size_t i = 0; i < log->net_count; i++)
		add_row(&rows, 1, "%s [%d] %s%s%s%s", log->nets[i].network, log->nets[i].index,
			log->nets[i].name, log->nets[i].link[0] != '\0' ? " " : "",
			log->nets[i].link, gdr[log->nets[i].gdr + 1]);
	write_rows(sink, "network", "process", "processes", &rows);
	for (size_t i = 0; i < log->link_count; i++) {
		const struct nccl_log_link *link = &log->links[i];

		add_row(&rows,
			(uint64_t)__builtin_popcountll(link->channels[0]) +
				(uint64_t)__builtin_popcountll(link->channels[1]),
			"%s%s%s%s%s",
			nccl_log_transport_name((enum nccl_log_transport)link->transport),
			link->network[0] != '\0' ? "/" : "", link->network,
			link->flags & NCCL_LOG_LINK_GDR ? " with GPUDirect RDMA" : "",
			link->flags & NCCL_LOG_LINK_PXN ? " through another GPU (PXN)" : "");
	}
	write_rows(sink, "links", "channel of a rank", "channels of ranks", &rows);
}

static void write_communicators(struct sink *sink, const struct nccl_log *log)
{
	struct rows rows = { .count = 0 };

	for (size_t i = 0; i < log->comm_count; i++)
		add_row(&rows, 1, "0x%llx, %d ranks%s", (unsigned long long)log->comms[i].hash,
			log->comms[i].nranks,
			log->comms[i].complete.line != 0 ? "" : ", not completed");
	write_rows(sink, "inits", "rank", "ranks", &rows);
	for (size_t i = 0; i < log->comm_count; i++)
		if (log->comms[i].coll_channels >= 0)
			add_row(&rows, 1, "%d for collectives, %d NVLS, %d for Send and Recv",
				log->comms[i].coll_channels, log->comms[i].nvls_channels,
				log->comms[i].p2p_channels);
	write_rows(sink, "channels", "rank", "ranks", &rows);
	for (size_t i = 0; i < log->choice_count; i++)
		add_row(&rows, log->choices[i].lines, "%s %llu bytes: %s %s",
			log->choices[i].function, (unsigned long long)log->choices[i].bytes,
			log->choices[i].algorithm, log->choices[i].protocol);
	write_rows(sink, "chosen", "call", "calls", &rows);
}

/* The slowest init, by phase. */
static void write_times(struct sink *sink, const struct nccl_log *log)
{
	const struct nccl_log_comm *slowest = NULL;

	for (size_t i = 0; i < log->comm_count; i++)
		if (log->comms[i].total_s >= 0 &&
		    (slowest == NULL || log->comms[i].total_s > slowest->total_s))
			slowest = &log->comms[i];
	if (slowest == NULL)
		return;
	sink_format(sink, "%-10s- slowest init %.2f s, rank %d of %d:", "times", slowest->total_s,
		    slowest->rank, slowest->nranks);
	for (int i = 0; i < NCCL_LOG_PHASES; i++)
		if (slowest->phase_s[i] > 0)
			sink_format(sink, " %s %.2f", nccl_log_phase_name((enum nccl_log_phase)i),
				    slowest->phase_s[i]);
	sink_text(sink, "\n");
}

void doctor_found_text(struct sink *sink, const struct nccl_log *log)
{
	struct rows rows = { .count = 0 };

	sink_format(sink, "\nSettings, hardware and choices from %llu lines of NCCL's logs:\n\n",
		    (unsigned long long)log->nccl_lines);
	write_processes(sink, log);
	write_network(sink, log);
	write_communicators(sink, log);
	write_times(sink, log);
	for (size_t i = 0; i < log->other_count; i++)
		add_row(&rows, log->others[i].lines, "%s", log->others[i].beginning);
	write_rows(sink, "unknown", "line", "lines", &rows);
}

/* Every fact of NCCL's logs, as JSON. */

static void put_place(struct json *json, const struct nccl_log *log, struct nccl_log_place place)
{
	json_put_string(json, "file", log->files[place.file].name);
	json_put_unsigned(json, "line", place.line);
}

static void put_processes(struct json *json, const struct nccl_log *log)
{
	json_put_array(json, "processes");
	for (size_t i = 0; i < log->process_count; i++) {
		const struct nccl_log_process *process = &log->processes[i];

		json_object(json);
		json_put_text_or_null(json, "host", process->host);
		json_put_natural_or_null(json, "pid", process->pid);
		json_put_natural_or_null(json, "launcher_rank", process->launcher_rank);
		json_put_text_or_null(json, "version", process->version);
		json_put_text_or_null(json, "cuda_version", process->cuda_version);
		json_put_text_or_null(json, "git", process->git);
		json_put_natural_or_null(json, "driver_version", process->driver_version);
		json_put_unsigned(json, "lines", process->lines);
		put_place(json, log, process->first);
		json_end(json);
	}
	json_end(json);
}

static void put_times(struct json *json, const struct nccl_log_comm *comm)
{
	if (comm->total_s < 0)
		return;
	json_put_object(json, "seconds");
	json_put_double(json, "total", comm->total_s);
	for (int i = 0; i < NCCL_LOG_PHASES; i++)
		if (comm->phase_s[i] >= 0)
			json_put_double(json, nccl_log_phase_name((enum nccl_log_phase)i),
					comm->phase_s[i]);
	json_end(json);
}

static void put_comms(struct json *json, const struct nccl_log *log)
{
	json_put_array(json, "communicators");
	for (size_t i = 0; i < log->comm_count; i++) {
		const struct nccl_log_comm *comm = &log->comms[i];

		json_object(json);
		json_put_unsigned(json, "process", comm->process);
		json_put_hex(json, "hash", comm->hash);
		json_put_signed(json, "rank", comm->rank);
		json_put_signed(json, "ranks", comm->nranks);
		json_put_natural_or_null(json, "nodes", comm->nnodes);
		json_put_natural_or_null(json, "cuda_device", comm->cuda_device);
		json_put_natural_or_null(json, "nvml_device", comm->nvml_device);
		json_put_hex(json, "bus_id", comm->bus_id);
		json_put_bool(json, "is_started", comm->start.line != 0);
		json_put_bool(json, "is_complete", comm->complete.line != 0);
		json_put_text_or_null(json, "end", comm->end_word);
		json_put_natural_or_null(json, "channels", comm->coll_channels);
		json_put_natural_or_null(json, "nvls_channels", comm->nvls_channels);
		json_put_natural_or_null(json, "p2p_channels", comm->p2p_channels);
		put_times(json, comm);
		put_place(json, log, comm->start.line != 0 ? comm->start : comm->complete);
		json_end(json);
	}
	json_end(json);
}

/* Up to 128 channels, as two words of bits. */
static void put_channels(struct json *json, const uint64_t bits[2])
{
	json_put_array(json, "channels");
	for (unsigned int i = 0; i < 128; i++)
		if (bits[i / 64] >> i % 64 & 1)
			json_unsigned(json, i);
	json_end(json);
}

static void put_links(struct json *json, const struct nccl_log *log)
{
	json_put_array(json, "links");
	for (size_t i = 0; i < log->link_count; i++) {
		const struct nccl_log_link *link = &log->links[i];

		json_object(json);
		json_put_unsigned(json, "process", link->process);
		json_put_natural_or_null(json, "communicator", link->comm);
		json_put_natural_or_null(json, "from", link->from);
		json_put_natural_or_null(json, "to", link->to);
		json_put_string(json, "direction",
				link->direction == 's'	 ? "send"
				: link->direction == 'r' ? "receive"
							 : NULL);
		json_put_natural_or_null(json, "connection", link->connection);
		put_channels(json, link->channels);
		json_put_string(json, "transport",
				nccl_log_transport_name((enum nccl_log_transport)link->transport));
		json_put_text_or_null(json, "network", link->network);
		json_put_natural_or_null(json, "device", link->device);
		json_put_bool(json, "is_gdr", link->flags & NCCL_LOG_LINK_GDR);
		json_put_bool(json, "is_shared", link->flags & NCCL_LOG_LINK_SHARED);
		json_put_natural_or_null(json, "through", link->through);
		put_place(json, log, link->place);
		json_end(json);
	}
	json_end(json);
}

static void put_rings(struct json *json, const struct nccl_log *log)
{
	json_put_array(json, "rings_and_trees");
	for (size_t i = 0; i < log->channel_count; i++) {
		const struct nccl_log_channel *channel = &log->channels[i];

		json_object(json);
		json_put_signed(json, "communicator", channel->comm);
		json_put_signed(json, "channel", channel->channel);
		json_put_text_or_null(json, "ring", channel->ring);
		json_put_natural_or_null(json, "ring_previous", channel->ring_previous);
		json_put_natural_or_null(json, "ring_next", channel->ring_next);
		json_put_natural_or_null(json, "tree_up", channel->tree_up);
		json_put_array(json, "tree_down");
		for (int j = 0; j < 3; j++)
			if (channel->tree_down[j] >= 0)
				json_signed(json, channel->tree_down[j]);
		json_end(json);
		json_end(json);
	}
	json_end(json);
}

static void put_nets(struct json *json, const struct nccl_log *log)
{
	json_put_array(json, "devices");
	for (size_t i = 0; i < log->net_count; i++) {
		const struct nccl_log_net *net = &log->nets[i];

		json_object(json);
		json_put_unsigned(json, "process", net->process);
		json_put_string(json, "network", net->network);
		json_put_signed(json, "index", net->index);
		json_put_string(json, "name", net->name);
		json_put_natural_or_null(json, "port", net->port);
		json_put_text_or_null(json, "link", net->link);
		json_put_text_or_null(json, "address", net->address);
		if (net->gdr >= 0)
			json_put_bool(json, "is_gdr", net->gdr);
		else
			json_put_null(json, "is_gdr");
		put_place(json, log, net->place);
		json_end(json);
	}
	json_end(json);
}

static void put_told(struct json *json, const struct nccl_log *log)
{
	json_put_array(json, "variables");
	for (size_t i = 0; i < log->variable_count; i++) {
		json_object(json);
		json_put_unsigned(json, "process", log->variables[i].process);
		json_put_string(json, "name", log->variables[i].name);
		json_put_string(json, "value", log->variables[i].value);
		put_place(json, log, log->variables[i].place);
		json_end(json);
	}
	json_end(json);
	json_put_array(json, "plugins");
	for (size_t i = 0; i < log->plugin_count; i++) {
		json_object(json);
		json_put_unsigned(json, "process", log->plugins[i].process);
		json_put_string(json, "kind", log->plugins[i].kind);
		json_put_string(json, "name", log->plugins[i].name);
		json_put_bool(json, "is_loaded", log->plugins[i].state == NCCL_LOG_PLUGIN_LOADED);
		json_put_string(json, "text", log->plugins[i].text);
		put_place(json, log, log->plugins[i].place);
		json_end(json);
	}
	json_end(json);
}

static void put_choices(struct json *json, const struct nccl_log *log)
{
	json_put_array(json, "choices");
	for (size_t i = 0; i < log->choice_count; i++) {
		const struct nccl_log_choice *choice = &log->choices[i];

		json_object(json);
		json_put_text_or_null(json, "function", choice->function);
		json_put_unsigned(json, "bytes", choice->bytes);
		json_put_string(json, "algorithm", choice->algorithm);
		json_put_text_or_null(json, "protocol", choice->protocol);
		json_put_natural_or_null(json, "channels", choice->channels);
		json_put_unsigned(json, "lines", choice->lines);
		put_place(json, log, choice->place);
		json_end(json);
	}
	json_end(json);
	json_put_array(json, "costs");
	for (size_t i = 0; i < log->cost_count; i++) {
		json_object(json);
		json_put_string(json, "function", log->costs[i].function);
		json_put_string(json, "algorithm", log->costs[i].algorithm);
		json_put_string(json, "protocol", log->costs[i].protocol);
		json_put_double(json, "latency_us", log->costs[i].latency_us);
		json_put_double(json, "gb_per_s", log->costs[i].bandwidth);
		json_end(json);
	}
	json_end(json);
}

static void put_queue(struct json *json, const struct nccl_log_queue *queue)
{
	json_put_unsigned(json, "process", queue->process);
	json_put_string(json, "device", queue->device);
	json_put_natural_or_null(json, "port", queue->port);
	json_put_signed(json, "queue_pair", queue->number);
	json_put_text_or_null(json, "peer", queue->peer);
	json_put_natural_or_null(json, "peer_queue_pair", queue->remote_number);
	json_put_natural_or_null(json, "peer_port", queue->remote_port);
	json_put_text_or_null(json, "gid", queue->local_gid);
	json_put_text_or_null(json, "peer_gid", queue->remote_gid);
	json_put_natural_or_null(json, "lid", queue->local_lid);
	json_put_natural_or_null(json, "peer_lid", queue->remote_lid);
	json_put_unsigned(json, "threshold_ns", queue->threshold_ns);
	json_put_unsigned(json, "slow_lines", queue->slow_lines);
	json_put_unsigned(json, "slowest_ns", queue->slowest_ns);
	json_put_unsigned(json, "stall_lines", queue->stall_lines);
	json_put_unsigned(json, "stall_ns", queue->stall_ns);
	json_put_bool(json, "is_stalled", queue->is_stalled);
	json_put_unsigned(json, "samples", queue->samples);
	json_put_unsigned(json, "slow_samples", queue->slow_samples);
	json_put_unsigned(json, "median_ns", queue->median_ns);
	json_put_unsigned(json, "p99_ns", queue->p99_ns);
}

static void put_health(struct json *json, const struct nccl_log *log)
{
	json_put_array(json, "queue_pairs");
	for (size_t i = 0; i < log->queue_count; i++) {
		json_object(json);
		put_queue(json, &log->queues[i]);
		put_place(json, log, log->queues[i].last);
		json_end(json);
	}
	json_end(json);
	json_put_array(json, "diagnostics");
	for (size_t i = 0; i < log->diagnosis_count; i++) {
		const struct nccl_log_diagnosis *diagnosis = &log->diagnoses[i];

		json_object(json);
		json_put_unsigned(json, "process", diagnosis->process);
		json_put_string(json, "text", diagnosis->text);
		json_put_hex(json, "communicator_hash", diagnosis->comm_hash);
		json_put_array(json, "ranks");
		for (size_t j = 0; j < diagnosis->rank_count; j++)
			json_signed(json, diagnosis->ranks[j]);
		json_end(json);
		json_put_unsigned(json, "lines", diagnosis->lines);
		put_place(json, log, diagnosis->place);
		json_end(json);
	}
	json_end(json);
	json_put_unsigned(json, "diagnostics_ok", log->diagnoses_fine);
}

static void put_lines(struct json *json, const struct nccl_log *log)
{
	json_put_object(json, "lines");
	for (int i = 0; i < NCCL_LOG_KINDS; i++)
		if (log->kinds[i] > 0)
			json_put_unsigned(json, nccl_log_kind_name((enum nccl_log_kind)i),
					  log->kinds[i]);
	json_end(json);
	json_put_array(json, "unknown");
	for (size_t i = 0; i < log->other_count; i++) {
		json_object(json);
		json_put_string(json, "beginning", log->others[i].beginning);
		json_put_unsigned(json, "lines", log->others[i].lines);
		put_place(json, log, log->others[i].place);
		json_end(json);
	}
	json_end(json);
	json_put_unsigned(json, "lines_cut", log->cut_lines);
	json_put_unsigned(json, "facts_left_out", log->left_out);
}

void doctor_found_json(struct json *json, const struct nccl_log *log)
{
	json_put_object(json, "nccl");
	put_processes(json, log);
	put_comms(json, log);
	put_links(json, log);
	put_rings(json, log);
	put_nets(json, log);
	put_told(json, log);
	put_choices(json, log);
	put_health(json, log);
	put_lines(json, log);
	json_end(json);
}
