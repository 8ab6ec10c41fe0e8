/* The agent about itself. */
#include "view/metrics_writer.h"

static const struct metrics_labels no_labels;

static struct metrics_labels one_label(struct metrics_out *out, const char *name, const char *value)
{
	struct metrics_labels labels;

	metrics_labels_begin(out, &labels);
	metrics_label(out, name, value);
	metrics_labels_end(out, &labels);
	return labels;
}

static void write_agent_processes(struct metrics_writer *writer)
{
	static const enum recording_life states[] = { RECORDING_ALIVE, RECORDING_ENDED,
						      RECORDING_KILLED, RECORDING_UNKNOWN };
	const struct recording *recording = writer->model.recording;
	struct metrics_out *out = &writer->out;

	metrics_family(out, METRICS_AGENT_PROCESSES);
	for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++) {
		uint64_t count = 0;

		for (size_t p = 0; p < recording->count; p++)
			count += recording->processes[p]->life == states[i];
		metrics_put_unsigned(out, one_label(out, "state", recording_life_name(states[i])),
				     count);
	}
}

static void write_folded(struct metrics_writer *writer)
{
	struct metrics_out *out = &writer->out;

	metrics_family(out, METRICS_AGENT_FOLDED);
	metrics_put_unsigned(out, one_label(out, "what", "communicators"),
			     writer->model.folded_comms);
	metrics_put_unsigned(out, one_label(out, "what", "sizes"), writer->folded_sizes);
	metrics_put_unsigned(out, one_label(out, "what", "functions"), writer->folded_functions);
	metrics_put_unsigned(out, one_label(out, "what", "algorithms"), writer->folded_choices);
	metrics_put_unsigned(out, one_label(out, "what", "peers"), writer->folded_links);
}

static void write_kernel(struct metrics_writer *writer, const uint64_t *counts)
{
	static const char *const names[METRICS_KERNEL_EVENTS] = { "asked", "granted", "refused",
								  "failed" };
	struct metrics_out *out = &writer->out;

	metrics_family(out, METRICS_AGENT_KERNEL);
	for (unsigned int i = 0; counts && i < METRICS_KERNEL_EVENTS; i++)
		metrics_put_unsigned(out, one_label(out, "event", names[i]), counts[i]);
}

static void write_own_process(struct metrics_writer *writer, const struct metrics_agent *agent)
{
	struct metrics_out *out = &writer->out;

	metrics_family(out, METRICS_CPU_SECONDS);
	metrics_put_seconds(out, no_labels, agent->cpu_ns);
	metrics_family(out, METRICS_RESIDENT_BYTES);
	if (agent->resident_bytes > 0)
		metrics_put_unsigned(out, no_labels, agent->resident_bytes);
	metrics_family(out, METRICS_OPEN_FDS);
	if (agent->open_fds > 0)
		metrics_put_unsigned(out, no_labels, agent->open_fds);
	metrics_family(out, METRICS_START_TIME);
	if (agent->start_wall_ns > 0)
		metrics_put_seconds(out, no_labels, agent->start_wall_ns);
}

void metrics_write_agent(struct metrics_writer *writer, const struct metrics_agent *agent)
{
	struct metrics_out *out = &writer->out;

	metrics_family(out, METRICS_BUILD_INFO);
	metrics_put_unsigned(out, one_label(out, "version", agent->version), 1);
	write_agent_processes(writer);
	metrics_family(out, METRICS_AGENT_LOOKS);
	metrics_put_unsigned(out, no_labels, agent->looks);
	metrics_family(out, METRICS_AGENT_LOOK_SECONDS);
	metrics_put_seconds(out, no_labels, agent->look_ns);
	metrics_family(out, METRICS_AGENT_REFUSED);
	metrics_put_unsigned(out, no_labels, agent->refused);
	metrics_family(out, METRICS_AGENT_UNREADABLE);
	metrics_put_unsigned(out, no_labels, agent->unreadable);
	metrics_family(out, METRICS_AGENT_LEFT_OUT);
	metrics_put_unsigned(out, no_labels, agent->left_out);
	metrics_family(out, METRICS_AGENT_MERGED);
	metrics_put_unsigned(out, no_labels, writer->model.merged);
	write_folded(writer);
	metrics_write_verdict_counts(writer, agent->verdicts);
	write_kernel(writer, agent->kernel);
	write_own_process(writer, agent);
}
