/* The facts of NCCL's logs in some lines. What is the same on many ranks is told once. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/text.h"
#include "programs/cli/cli_memory.h"
#include "programs/cli/doctor_found.h"
#include "view/verdict_text.h"

enum { ROWS_MOST = 24, ROW_BYTES = 200 };

/* Texts with how often each was met, in the order of their first. */
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
		verdict_text_clean(clean, sizeof(clean), rows->texts[i]);
		sink_format(sink, "%-9s- %s", i == 0 ? title : "", clean);
		sink_format(sink, " (%llu %s)\n", (unsigned long long)rows->counts[i],
			    text_which(rows->counts[i], one, many));
	}
	if (rows->left_out > 0)
		sink_format(sink, "%-9s  and %llu more\n", "", (unsigned long long)rows->left_out);
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
	write_rows(sink, "told", "process", "processes", &rows);
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

/* The slowest init of all, by phase. */
static void write_times(struct sink *sink, const struct nccl_log *log)
{
	const struct nccl_log_comm *slowest = NULL;

	for (size_t i = 0; i < log->comm_count; i++)
		if (log->comms[i].total_s >= 0 &&
		    (slowest == NULL || log->comms[i].total_s > slowest->total_s))
			slowest = &log->comms[i];
	if (slowest == NULL)
		return;
	sink_format(sink, "%-9s- an init took %.2f s at most, rank %d of %d:", "times",
		    slowest->total_s, slowest->rank, slowest->nranks);
	for (int i = 0; i < NCCL_LOG_PHASES; i++)
		if (slowest->phase_s[i] > 0)
			sink_format(sink, " %s %.2f", nccl_log_phase_name((enum nccl_log_phase)i),
				    slowest->phase_s[i]);
	sink_text(sink, "\n");
}

void doctor_found_text(struct sink *sink, const struct nccl_log *log)
{
	struct rows rows = { .count = 0 };

	sink_format(sink,
		    "\nWhat NCCL says it was told, found and chose, in %llu lines of its own:\n\n",
		    (unsigned long long)log->nccl_lines);
	write_processes(sink, log);
	write_network(sink, log);
	write_communicators(sink, log);
	write_times(sink, log);
	for (size_t i = 0; i < log->other_count; i++)
		add_row(&rows, log->others[i].lines, "%s", log->others[i].beginning);
	write_rows(sink, "unknown", "line", "lines", &rows);
}
