/* Everything that is read from logs, as text: the cases of nccl_lines.log, and the logs of two real jobs. */
#include "import/nccl_log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/attributes.h"
#include "tests/support/shown_text.h"
#include "tests/tap.h"

static void show_place(const char *name, struct nccl_log_place place)
{
	if (place.line != 0)
		show(" %s%u:%" PRIu64, name, place.file, place.line);
}

static void show_processes(const struct nccl_log *log)
{
	for (size_t i = 0; i < log->process_count; i++) {
		const struct nccl_log_process *process = &log->processes[i];

		show("process %zu %s:%" PRId64, i, process->host, process->pid);
		show_known("launcher", process->launcher_rank, -1);
		show_known("device", process->cuda_device, -1);
		show_known("driver", process->driver_version, 0);
		show_text("version", process->version);
		show_text("cuda", process->cuda_version);
		show_text("git", process->git);
		show_place("version at ", process->version_place);
		show_place("git at ", process->git_place);
		show_place("from ", process->first);
		show_place("to ", process->last);
		show(" lines=%" PRIu64 " levels", process->lines);
		for (size_t j = 0; j < ARRAY_LENGTH(process->levels); j++)
			show("%c%" PRIu64, j == 0 ? '=' : ',', process->levels[j]);
		show_known("last_comm", process->last_comm, -1);
		show("\n");
	}
}

static void show_comms(const struct nccl_log *log)
{
	for (size_t i = 0; i < log->comm_count; i++) {
		const struct nccl_log_comm *comm = &log->comms[i];

		show("comm %zu process=%u pointer=%" PRIx64 " hash=%" PRIx64 " parent=%" PRIx64
		     " %d/%d bus=%" PRIx64,
		     i, comm->process, comm->pointer, comm->hash, comm->parent, comm->rank,
		     comm->nranks, comm->bus_id);
		for (size_t j = 0; j < i; j++)
			if (log->comms[j].group == comm->group)
				show(" group of %zu", j);
		show_known("color", comm->color, -1);
		show_known("cuda", comm->cuda_device, -1);
		show_known("nvml", comm->nvml_device, -1);
		show_known("nnodes", comm->nnodes, -1);
		show_known("local_ranks", comm->local_ranks, -1);
		show_known("local_rank", comm->local_rank, -1);
		show_known("mnnvl", comm->mnnvl, -1);
		show_text("function", comm->function);
		show_place("start ", comm->start);
		show_place("complete ", comm->complete);
		show_place("end ", comm->end);
		show_text("end", comm->end_word);
		if (comm->total_s >= 0)
			show(" total=%.3f", comm->total_s);
		show_place("timings ", comm->timings);
		for (int j = 0; j < NCCL_LOG_PHASES; j++)
			if (comm->phase_s[j] != -1)
				show(" %s=%.3f", nccl_log_phase_name((enum nccl_log_phase)j),
				     comm->phase_s[j]);
		if (comm->bootstrap_s >= 0)
			show(" bootstrap_s=%.3f", comm->bootstrap_s);
		show_known("coll", comm->coll_channels, -1);
		show_known("collnet", comm->collnet_channels, -1);
		show_known("nvls", comm->nvls_channels, -1);
		show_known("p2p", comm->p2p_channels, -1);
		show_known("p2p_per_peer", comm->p2p_per_peer, -1);
		show_place("channels ", comm->channels);
		show_known("pxn", comm->ring_pxn, -1);
		show_known("gdr", comm->ring_gdr, -1);
		show_known("rings", comm->has_rings, 0);
		show_known("trees", comm->has_trees, 0);
		show_known("previous", comm->previous, -1);
		show("\n");
	}
}

static void show_links(const struct nccl_log *log)
{
	for (size_t i = 0; i < log->link_count; i++) {
		const struct nccl_log_link *link = &log->links[i];

		show("link process=%u %d[%d] -> %d[%d] %c %s flags=%u", link->process, link->from,
		     link->from_device, link->to, link->to_device, link->direction,
		     nccl_log_transport_name(link->transport), link->flags);
		show_known("comm", link->comm, -1);
		show_known("connection", link->connection, -1);
		show_known("through", link->through, -1);
		show_known("device", link->device, -1);
		show_text("network", link->network);
		show_text("detail", link->detail);
		show(" channels=%" PRIx64 ",%" PRIx64 " lines=%" PRIu64, link->channels[1],
		     link->channels[0], link->lines);
		show_place("at ", link->place);
		show("\n");
	}
	for (size_t i = 0; i < log->channel_count; i++) {
		const struct nccl_log_channel *channel = &log->channels[i];

		show("channel %d comm=%d", channel->channel, channel->comm);
		show_known("previous", channel->ring_previous, -2);
		show_known("next", channel->ring_next, -2);
		show_known("up", channel->tree_up, -2);
		for (int j = 0; j < 3; j++)
			show_known("down", channel->tree_down[j], -2);
		show_text("ring", channel->ring);
		show_place("at ", channel->place);
		show("\n");
	}
}

static void show_setup(const struct nccl_log *log)
{
	static const char *const states[] = { "loaded", "not found", "failed", "internal" };

	for (size_t i = 0; i < log->net_count; i++) {
		const struct nccl_log_net *net = &log->nets[i];

		show("net process=%u %s %d '%s'", net->process, net->network, net->index,
		     net->name);
		show_known("port", net->port, -1);
		show_text("link", net->link);
		show_text("address", net->address);
		show_known("speed", net->speed, -1);
		show_known("gdr", net->gdr, -1);
		show_known("virtual", net->is_virtual, 0);
		show_place("at ", net->place);
		show_place("gdr at ", net->gdr_place);
		show("\n");
	}
	for (size_t i = 0; i < log->gdr_count; i++) {
		show("gdr process=%u %s '%s' lines=%" PRIu64, log->gdrs[i].process,
		     log->gdrs[i].is_on ? "on" : "off", log->gdrs[i].text, log->gdrs[i].lines);
		show_place("at ", log->gdrs[i].place);
		show("\n");
	}
	for (size_t i = 0; i < log->variable_count; i++) {
		const struct nccl_log_variable *variable = &log->variables[i];

		show("variable process=%u %s='%s' lines=%" PRIu64, variable->process,
		     variable->name, variable->value, variable->lines);
		show_place("at ", variable->place);
		show("\n");
	}
	for (size_t i = 0; i < log->plugin_count; i++) {
		const struct nccl_log_plugin *plugin = &log->plugins[i];

		show("plugin process=%u %s '%s' %s lines=%" PRIu64, plugin->process, plugin->kind,
		     plugin->name, states[plugin->state], plugin->lines);
		show_known("version", plugin->version, -1);
		show_place("at ", plugin->place);
		show(": %s\n", plugin->text);
	}
}

static void show_operations(const struct nccl_log *log)
{
	for (size_t i = 0; i < log->choice_count; i++) {
		const struct nccl_log_choice *choice = &log->choices[i];

		show("choice '%s' %" PRIu64 " bytes '%s' '%s' lines=%" PRIu64, choice->function,
		     choice->bytes, choice->algorithm, choice->protocol, choice->lines);
		show_known("channels", choice->channels, -1);
		if (choice->time_us >= 0)
			show(" time=%.3f", choice->time_us);
		show_place("at ", choice->place);
		show("\n");
	}
	for (size_t i = 0; i < log->cost_count; i++) {
		const struct nccl_log_cost *cost = &log->costs[i];

		show("cost %s %s %s %.3f us %.3f GB/s", cost->function, cost->algorithm,
		     cost->protocol, cost->latency_us, cost->bandwidth);
		show_place("at ", cost->place);
		show("\n");
	}
	for (size_t i = 0; i < log->operation_count; i++) {
		const struct nccl_log_operation *operation = &log->operations[i];

		show("operation process=%u %s #%" PRIx64 "-%" PRIx64 " lines=%" PRIu64
		     " elements=%" PRIu64,
		     operation->process, operation->function, operation->first_count,
		     operation->last_count, operation->lines, operation->last_elements);
		show_known("comm", operation->comm, -1);
		show_known("datatype", operation->last_datatype, -1);
		show_place("from ", operation->first);
		show_place("to ", operation->last);
		show("\n");
	}
}

static void show_queues(const struct nccl_log *log)
{
	for (size_t i = 0; i < log->queue_count; i++) {
		const struct nccl_log_queue *queue = &log->queues[i];

		show("queue process=%u %s port=%d qp=%" PRId64 " %c%s", queue->process,
		     queue->device, queue->port, queue->number, queue->direction,
		     queue->is_stalled ? " stalled" : "");
		show_text("peer", queue->peer);
		show_known("remote", queue->remote_number, -1);
		show_known("remote_port", queue->remote_port, -1);
		show_known("lid", queue->local_lid, -1);
		show_known("remote_lid", queue->remote_lid, -1);
		show_text("gid", queue->local_gid);
		show_text("remote_gid", queue->remote_gid);
		show(" threshold=%" PRIu64 " slow=%" PRIu64 " slowest=%" PRIu64 " stalls=%" PRIu64
		     " longest=%" PRIu64 " in_flight=%" PRIu64,
		     queue->threshold_ns, queue->slow_lines, queue->slowest_ns, queue->stall_lines,
		     queue->stall_ns, queue->in_flight);
		show(" samples=%" PRIu64 " slow_samples=%" PRIu64 " median=%" PRIu64
		     " p99=%" PRIu64,
		     queue->samples, queue->slow_samples, queue->median_ns, queue->p99_ns);
		show_place("from ", queue->first);
		show_place("to ", queue->last);
		show("\n");
	}
	for (size_t i = 0; i < log->diagnosis_count; i++) {
		const struct nccl_log_diagnosis *diagnosis = &log->diagnoses[i];

		show("diagnosis process=%u comm=%" PRIx64 " lines=%" PRIu64 " ranks",
		     diagnosis->process, diagnosis->comm_hash, diagnosis->lines);
		for (size_t j = 0; j < diagnosis->rank_count; j++)
			show("%c%d", j == 0 ? '=' : ',', diagnosis->ranks[j]);
		show_place("at ", diagnosis->place);
		show(": %s\n", diagnosis->text);
	}
}

static void show_lines(const struct nccl_log *log)
{
	for (size_t i = 0; i < log->warning_count; i++) {
		const struct nccl_log_warning *warning = &log->warnings[i];

		show("%s process=%u lines=%" PRIu64,
		     warning->is_attention ? "attention" : "warning", warning->process,
		     warning->lines);
		show_known("comm", warning->comm, -1);
		show_text("source", warning->source);
		show_place("at ", warning->place);
		show_place("to ", warning->last);
		show(": %s\n", warning->text);
	}
	for (size_t i = 0; i < log->report_count; i++) {
		show("report lines=%" PRIu64, log->reports[i].lines);
		show_known("rank", log->reports[i].rank, -1);
		show_place("at ", log->reports[i].place);
		show(": %s\n", log->reports[i].text);
	}
	for (size_t i = 0; i < log->note_count; i++) {
		show("note process=%u %s lines=%" PRIu64, log->notes[i].process,
		     nccl_log_kind_name(log->notes[i].kind), log->notes[i].lines);
		show_known("comm", log->notes[i].comm, -1);
		show_place("at ", log->notes[i].place);
		show(": %s\n", log->notes[i].text);
	}
	for (size_t i = 0; i < log->other_count; i++) {
		show("other lines=%" PRIu64, log->others[i].lines);
		show_place("at ", log->others[i].place);
		show(": %s\n", log->others[i].beginning);
	}
}

static void show_log(const struct nccl_log *log)
{
	for (size_t i = 0; i < log->file_count; i++)
		show("file %s: %" PRIu64 " bytes, %" PRIu64 " lines, %" PRIu64 " of NCCL\n",
		     log->files[i].name, log->files[i].bytes, log->files[i].lines,
		     log->files[i].nccl_lines);
	show("all: %" PRIu64 " lines, %" PRIu64 " of NCCL, %" PRIu64 " cut, %" PRIu64
	     " long, %" PRIu64 " fine diagnoses, %" PRIu64 " facts and %" PRIu64
	     " others left out;",
	     log->lines, log->nccl_lines, log->cut_lines, log->long_lines, log->diagnoses_fine,
	     log->left_out, log->others_left_out);
	for (int i = 0; i < NCCL_LOG_KINDS; i++)
		show_known(nccl_log_kind_name((enum nccl_log_kind)i), (int64_t)log->kinds[i], 0);
	show("\n");
	show_processes(log);
	show_comms(log);
	show_links(log);
	show_setup(log);
	show_operations(log);
	show_queues(log);
	show_lines(log);
	show("\n");
}

/* The file has ^[ and ^M for escape and carriage return. */
static void with_control_bytes(char *text)
{
	char *to = text;

	for (const char *at = text; *at != '\0'; at++) {
		bool is_control = at[0] == '^' && (at[1] == '[' || at[1] == 'M');

		at += is_control;
		*to++ = !is_control ? *at : *at == 'M' ? '\r' : '\x1b';
	}
	*to = '\0';
}

/* Each line alone, in memory that ends where it ends: nothing behind it is read. */
static void take_each_line(const char *lines, size_t length)
{
	struct nccl_log log;

	nccl_log_init(&log);
	for (const char *at = lines, *end; at < lines + length; at = end + 1) {
		char *line;

		end = memchr(at, '\n', (size_t)(lines + length - at));
		line = malloc((size_t)(end - at) + 1);
		memcpy(line + 1, at, (size_t)(end - at));
		if (nccl_log_add_memory(&log, "line", line + 1, (size_t)(end - at)) != OK)
			abort();
		free(line);
	}
	show("line by line: %zu files, %" PRIu64 " lines, %" PRIu64 " of NCCL\n", log.file_count,
	     log.lines, log.nccl_lines);
	nccl_log_release(&log);
}

/* A case is a log of its own. */
static void take_case(const char *lines, size_t length)
{
	struct nccl_log log;

	take_each_line(lines, length);
	nccl_log_init(&log);
	if (nccl_log_add_memory(&log, "a.log", lines, length) != OK)
		abort();
	show_log(&log);
	nccl_log_release(&log);
}

static void each_case(void)
{
	char *text = shown_file("tests/unit/import/nccl_lines.log");

	with_control_bytes(text);
	shown_cases(text, take_case);
	free(text);
	EXPECT_THAT("each line is read as expected",
		    shown_is_expected("tests/unit/import/expected/nccl_lines.txt"));
}

static void real_jobs(void)
{
	static const char *const files[][4] = {
		{ "tests/nccllog/info-4ranks-29630.dbg", "tests/nccllog/info-4ranks-29631.dbg",
		  "tests/nccllog/info-4ranks-29632.dbg", "tests/nccllog/info-4ranks-29633.dbg" },
		{ "tests/nccllog/trace-2ranks-29679.dbg", "tests/nccllog/trace-2ranks-29680.dbg" },
		{ "tests/gpu/ras/2.31.0-skip.log" },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
		struct nccl_log log;

		nccl_log_init(&log);
		for (size_t j = 0; j < 4 && files[i][j] != NULL; j++) {
			char *text = shown_file(files[i][j]);

			if (nccl_log_add_memory(&log, strrchr(files[i][j], '/') + 1, text,
						strlen(text)) != OK)
				abort();
			free(text);
		}
		show("=== %s\n", files[i][0]);
		show_log(&log);
		nccl_log_release(&log);
	}
	EXPECT_THAT("real logs are read as expected",
		    shown_is_expected("tests/unit/import/expected/nccl_logs.txt"));
}

/* ---- memory ---------------------------------------------------------------------------------- */

static struct nccl_log log_of(const char *text)
{
	struct nccl_log log;

	nccl_log_init(&log);
	if (nccl_log_add_memory(&log, "a.log", text, strlen(text)) != OK)
		abort();
	return log;
}

static void many_facts_are_found_again(void)
{
	enum { COUNT = 3000 };
	struct nccl_log log;
	char line[256];
	size_t right = 0;

	nccl_log_init(&log);
	for (int i = 0; i < 2 * COUNT; i++) {
		int length = snprintf(line, sizeof(line),
				      "n:7:8 [0] NCCL INFO NCCL_V%d set to value-%d-%040d\n",
				      i % COUNT, i % COUNT, i % COUNT);

		if (nccl_log_add_memory(&log, "again", line, (size_t)length) != OK)
			abort();
	}
	EXPECT_EQUAL(log.variable_count, COUNT);
	for (int i = 0; i < COUNT; i++) {
		char name[32], value[80];

		snprintf(name, sizeof(name), "NCCL_V%d", i);
		snprintf(value, sizeof(value), "value-%d-%040d", i, i);
		right += log.variables[i].lines == 2 && strcmp(log.variables[i].name, name) == 0 &&
			 strcmp(log.variables[i].value, value) == 0;
	}
	EXPECT_EQUAL(right, COUNT);
	EXPECT(nccl_log_variable(&log, 0, "NCCL_V2999") == &log.variables[2999] &&
	       nccl_log_variable(&log, 1, "NCCL_V2999") == NULL);
	EXPECT(log.process_count == 1 && log.file_count == 2 * COUNT && log.left_out == 0);
	nccl_log_release(&log);
}

/* The table of costs has eight columns with three cells each, and room for 4,096 cells in all. */
static void what_does_not_fit_is_counted(void)
{
	static char text[1 << 16];
	int used = snprintf(text, sizeof(text),
			    "n:7:8 [0] NCCL INFO   Algorithm |A|B|C|D|E|F|G|H|I|\n");
	struct nccl_log log;

	for (int i = 0; i < 172; i++) {
		used += snprintf(text + used, sizeof(text) - (size_t)used,
				 "n:7:8 [0] NCCL INFO   F%d |", i);
		for (int j = 0; j < 27; j++)
			used += snprintf(text + used, sizeof(text) - (size_t)used, "%d/2|", j + 1);
		used += snprintf(text + used, sizeof(text) - (size_t)used, "\n");
	}
	log = log_of(text);
	EXPECT_EQUAL(log.cost_count, 4096);
	EXPECT_EQUAL(log.left_out, 172 * 24 - 4096);
	EXPECT(strcmp(log.costs[23].algorithm, "H") == 0 && log.costs[23].latency_us == 24 &&
	       strcmp(log.costs[23].protocol, "Simple") == 0 &&
	       strcmp(log.costs[24].algorithm, "A") == 0);
	nccl_log_release(&log);
}

/* A line has at most 8,192 bytes, a text 4,095, the name of a host 255. */
static void long_lines_are_cut(void)
{
	static char text[9000], long_text[9000];
	struct nccl_log log;

	memset(long_text, 'x', sizeof(long_text) - 1);
	for (int more = 0; more < 2; more++) {
		snprintf(text, sizeof(text), "n:7:8 [0] NCCL INFO NCCL_A set to %.*s\n",
			 8192 - 34 + more, long_text);
		log = log_of(text);
		EXPECT(log.long_lines == (uint64_t)more && log.variable_count == 1 &&
		       strlen(log.variables[0].value) == 4095);
		nccl_log_release(&log);
	}
	for (int more = 0; more < 2; more++) {
		snprintf(text, sizeof(text), "n:7:8 [0] NCCL INFO NCCL_A set to %.*s", 4095 + more,
			 long_text);
		log = log_of(text);
		EXPECT(log.variable_count == 1 && strlen(log.variables[0].value) == 4095);
		nccl_log_release(&log);
		snprintf(text, sizeof(text), "%.*s:7:8 [0] NCCL INFO cudaDriverVersion 5",
			 255 + more, long_text);
		log = log_of(text);
		EXPECT(log.process_count == 1 && strlen(log.processes[0].host) == 255);
		nccl_log_release(&log);
	}
	/* Headers are remembered up to a length: longer ones are read each time, with the same result. */
	for (int length = 170; length < 200; length++) {
		snprintf(text, sizeof(text),
			 "%1$.*2$s:7:8 [0] NCCL INFO NCCL_A set to 1\n"
			 "%1$.*2$s:7:8 [0] NCCL INFO NCCL_A set to 1\n"
			 "%1$.*2$s:7:8 [0] NCCL WARN what\n",
			 long_text, length);
		log = log_of(text);
		EXPECT(log.process_count == 1 && strlen(log.processes[0].host) == (size_t)length &&
		       log.variable_count == 1 && log.variables[0].lines == 2 &&
		       log.warning_count == 1);
		nccl_log_release(&log);
	}
}

/* Of many communicators of a process, a thread without one looks at the last 16. */
static void the_latest_communicators_are_searched(void)
{
	static char text[8192];
	int used = 0;
	struct nccl_log log;

	for (int i = 0; i < 17; i++)
		used += snprintf(text + used, sizeof(text) - (size_t)used,
				 "n:7:8 [0] NCCL INFO comm 0x%x rank %d nranks 64 commId 0x%x - "
				 "Init START\n",
				 i + 1, i, i + 1);
	for (int i = 0; i < 2; i++)
		used += snprintf(text + used, sizeof(text) - (size_t)used,
				 "n:7:9 [0] NCCL INFO Channel 00/0 : %d[0] -> 63[1] via SHM\n", i);
	log = log_of(text);
	EXPECT(log.comm_count == 17 && log.link_count == 2 && log.links[0].comm == -1 &&
	       log.links[1].comm == 1);
	nccl_log_release(&log);
}

/* What a descriptor gives at a time need not be lines. */
static void pieces_are_put_together(void)
{
	static const char *const pieces[] = {
		"n:7:8 [0] NC",
		"CL INFO cudaDriver",
		"Version 12080\nn:7:8 [0] NCCL INFO NCCL_A set",
		" to 5\n\n",
		"\nn:9:8 [0] NCCL INFO NCCL_A set to 6",
	};
	struct nccl_log log;
	uint64_t bytes = 0;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == -1)
		abort();
	for (size_t i = 0; i < ARRAY_LENGTH(pieces); i++) {
		if (write(ends[1], pieces[i], strlen(pieces[i])) != (ssize_t)strlen(pieces[i]))
			abort();
		bytes += strlen(pieces[i]);
	}
	close(ends[1]);
	nccl_log_init(&log);
	EXPECT(nccl_log_add_fd(&log, "pieces", ends[0]) == OK);
	close(ends[0]);
	EXPECT(log.lines == 5 && log.nccl_lines == 3 && log.files[0].bytes == bytes &&
	       log.processes[0].driver_version == 12080 && log.variable_count == 2 &&
	       strcmp(log.variables[1].value, "6") == 0 && log.variables[1].process == 1);
	EXPECT_THAT("what cannot be read is an error",
		    nccl_log_add_fd(&log, "none", -1) == ERR_SYSTEM);
	nccl_log_release(&log);
}

/* A line as long as the buffer is read once, its rest is skipped. */
static void a_line_may_fill_the_buffer(void)
{
	enum { BUFFER = 1 << 18 };
	static char text[BUFFER + 4096];

	for (int length = BUFFER - 1; length <= BUFFER + 1; length++) {
		struct nccl_log log;
		int fd = memfd_create("log", MFD_CLOEXEC), used;

		memset(text, 'y', sizeof(text));
		memcpy(text, "n:7:8 [0] NCCL INFO NCCL_A set to 5 ", 36);
		used = length + snprintf(text + length, sizeof(text) - (size_t)length,
					 "\nn:7:8 [0] NCCL INFO NCCL_B set to 6\nx\n");
		if (fd == -1 || write(fd, text, (size_t)used) != used ||
		    lseek(fd, 0, SEEK_SET) != 0)
			abort();
		nccl_log_init(&log);
		EXPECT(nccl_log_add_fd(&log, "long", fd) == OK);
		EXPECT(log.lines == 3 && log.long_lines == 1 && log.nccl_lines == 2 &&
		       log.variable_count == 2 && strcmp(log.variables[1].value, "6") == 0 &&
		       log.files[0].bytes == (uint64_t)used);
		nccl_log_release(&log);
		close(fd);
	}
}

static void what_has_no_name(void)
{
	EXPECT(strcmp(nccl_log_phase_name(NCCL_LOG_PHASES), "?") == 0 &&
	       strcmp(nccl_log_transport_name(NCCL_LOG_TRANSPORTS), "?") == 0 &&
	       strcmp(nccl_log_kind_name(NCCL_LOG_KINDS), "?") == 0);
}

int main(void)
{
	each_case();
	real_jobs();
	many_facts_are_found_again();
	what_does_not_fit_is_counted();
	long_lines_are_cut();
	the_latest_communicators_are_searched();
	pieces_are_put_together();
	a_line_may_fill_the_buffer();
	what_has_no_name();
	return tap_done();
}
