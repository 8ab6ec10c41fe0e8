/* Everything that is read from logs, as text: the cases of nccl_lines.log, and the logs of two real jobs. */
#include "import/nccl_log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

/* A case is a log of its own. */
static void take_case(const char *lines, size_t length)
{
	struct nccl_log log;

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

int main(void)
{
	each_case();
	real_jobs();
	return tap_done();
}
