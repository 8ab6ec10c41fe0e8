/* The rules by name, and how each speaks: with the line it goes by, whom it is about, and its page. */
#include "doctor/setup.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "doctor/setup_parts.h"

static const struct setup_rule rules[] = {
	{ "init-incomplete",
	  "a communicator was begun and never completed: which ranks are missing" },
	{ "version-mismatch", "ranks run different releases of NCCL" },
	{ "interface-not-found", "no network interface fits what was asked for" },
	{ "peer-lost", "a connection was closed by the other side, or cannot be made" },
	{ "shm-full", "there is too little shared memory" },
	{ "memlock-limit", "memory cannot be registered with the network card" },
	{ "ib-error", "the InfiniBand or RoCE network reported an error" },
	{ "gpu-error", "CUDA reported an error" },
	{ "duplicate-gpu", "two ranks were given the same GPU" },
	{ "size-mismatch", "ranks sent and received different sizes" },
	{ "torch-timeout", "PyTorch's watchdog gave up on a collective" },
	{ "nccl-error", "PyTorch got an error from NCCL" },
	{ "nccl-warning", "NCCL warned of something else" },
	{ "net-socket-fallback", "traffic goes through sockets although InfiniBand is there" },
	{ "net-socket", "traffic between nodes goes through sockets" },
	{ "interface-slow", "an interface for management or containers carries the data" },
	{ "hcas-unused", "fewer network cards are used than were found" },
	{ "few-hcas", "many GPUs share few network cards" },
	{ "gdr-off", "GPUDirect RDMA is not used" },
	{ "p2p-disabled", "GPUs of a node were told not to talk directly" },
	{ "p2p-not-used", "GPUs of a node talk through shared memory" },
	{ "shm-disabled", "shared memory within a node was turned off" },
	{ "few-channels", "the number of channels was limited" },
	{ "buffer-size", "the size of NCCL's buffers was changed" },
	{ "algorithm-forced", "the algorithm or protocol was forced" },
	{ "debug-left-on", "NCCL writes a debug log while the job runs" },
	{ "environment-differs", "ranks run with different settings" },
	{ "virtual-topology", "the PCI topology is that of a virtual machine" },
	{ "ib-disabled", "InfiniBand was turned off" },
	{ "ib-timeout", "the network gives up earlier than it should" },
	{ "launch-blocking", "every CUDA launch waits for its end" },
	{ "max-connections", "kernels share fewer hardware queues" },
	{ "profiler-plugin", "NCCL does not load Ringside" },
	{ "plugin-failed", "a plugin was asked for and is not used" },
	{ "init-slow", "making a communicator takes long" },
	{ "pxn-off", "GPUs may not use network cards near to other GPUs" },
	{ "nvls-off", "NVLink SHARP was turned off" },
	{ "nvls-failed", "NVLink SHARP is there and cannot be used" },
	{ "mnnvl-off", "NVLink between nodes was turned off" },
	{ "fabric-state", "the NVLink fabric is not ready" },
	{ "torch-watchdog-off", "PyTorch will not end a job that hangs" },
	{ "torch-blocking-wait", "PyTorch waits on the host for every collective" },
	{ "value-ignored", "NCCL did not take a value as it was given" },
};

const struct setup_rule *setup_rule(size_t index)
{
	return index < ARRAY_LENGTH(rules) ? &rules[index] : NULL;
}

struct verdict *setup_verdict(const struct setup *setup, const char *rule,
			      enum verdict_severity severity)
{
	struct verdict *verdict = verdicts_add(setup->verdicts, VERDICT_SETUP, severity);

	text_copy(verdict->rule, sizeof(verdict->rule), rule);
	text_format(verdict->page, sizeof(verdict->page), "setup/%s.md", rule);
	return verdict;
}

void setup_cite(const struct setup *setup, struct verdict *verdict, struct nccl_log_place place,
		const char *format, ...)
{
	char text[700];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	verdict_evidence(verdict, "%s:%llu: %s", setup->log->files[place.file].name,
			 (unsigned long long)place.line, text);
}

void setup_cite_variable(const struct setup *setup, struct verdict *verdict,
			 const struct setup_variable *variable)
{
	char who[320];

	if (variable->line != NULL)
		setup_cite(setup, verdict, variable->line->place, "%s set by environment to %s",
			   variable->name, variable->value);
	else
		verdict_evidence(verdict, "env of %s: %s=%s",
				 setup_who_text(setup, variable->who, who, sizeof(who)),
				 variable->name, variable->value);
}

void setup_group_add(const struct setup *setup, struct setup_group *group, uint32_t who)
{
	if (group->count == 0) {
		*group = (struct setup_group){ 1, who, true, who };
		return;
	}
	if (group->last == who)
		return;
	group->count++;
	group->last = who;
	group->is_one_host &=
		setup_same_host(setup->whos[group->first].host, setup->whos[who].host);
}

void setup_blame(const struct setup *setup, struct verdict *verdict,
		 const struct setup_group *group)
{
	const struct setup_who *who = &setup->whos[group->first];

	if (group->count == 0)
		return;
	text_copy(verdict->job, sizeof(verdict->job), who->job);
	if (group->is_one_host)
		text_copy(verdict->host, sizeof(verdict->host), who->host);
	if (group->count > 1)
		return;
	verdict->rank = who->rank;
	verdict->pid = who->pid;
	if (who->rank >= 0)
		text_format(verdict->rank_label, sizeof(verdict->rank_label), "%lld",
			    (long long)who->rank);
}

const char *setup_group_text(const struct setup *setup, const struct setup_group *group, char *to,
			     size_t size)
{
	char who[320];

	if (group->count == 1)
		text_format(to, size, "on %s",
			    setup_who_text(setup, group->first, who, sizeof(who)));
	else if (group->count == setup->who_count)
		text_copy(to, size, "on all ranks that can be seen");
	else
		text_format(to, size, "on %zu of %zu ranks", group->count, setup->who_count);
	return to;
}

enum status setup_find(struct verdicts *verdicts, const struct nccl_log *log,
		       const struct recording *recording)
{
	struct setup setup = { .verdicts = verdicts, .log = log, .recording = recording };
	enum status status = setup_begin(&setup);

	if (status == OK) {
		setup_find_variables(&setup);
		setup_find_versions(&setup);
		status = setup_find_differences(&setup);
	}
	if (status == OK && log != NULL) {
		setup_find_warnings(&setup);
		setup_find_reports(&setup);
		setup_find_plugins(&setup);
		setup_find_node(&setup);
		status = setup_find_network(&setup);
		if (status == OK)
			status = setup_find_init(&setup);
	}
	setup_end(&setup);
	return status;
}
