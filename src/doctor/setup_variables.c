/* Rules that one variable is enough for. One verdict per variable, for all who have it so. */
#include <string.h>
#include <strings.h>

#include "common/text.h"
#include "doctor/setup_parts.h"

enum when {
	WHEN_TRUE,
	WHEN_FALSE,
	WHEN_SET,
	WHEN_AT_MOST, /* a number of at most `number` and above 0 */
	WHEN_BELOW,
	WHEN_NOT,  /* any number but this one */
	WHEN_WORD, /* this word */
};

struct variable_rule {
	const char *rule;
	const char *variable;
	enum when when;
	int64_t number;
	const char *word;
	enum verdict_severity severity;
	const char *title; /* "%s" the value, "%s" where */
	const char *advice;
};

static const struct variable_rule rules[] = {
	{ "ib-disabled", "NCCL_IB_DISABLE", WHEN_TRUE, 0, NULL, VERDICT_NOTE,
	  "InfiniBand and RoCE are turned off (NCCL_IB_DISABLE=%s) %s",
	  "Unset NCCL_IB_DISABLE unless this machine has no InfiniBand or RoCE" },
	{ "ib-disabled", "NCCL_NET", WHEN_WORD, 0, "Socket", VERDICT_NOTE,
	  "sockets are asked for (NCCL_NET=%s) %s",
	  "Unset NCCL_NET unless this machine has no InfiniBand or RoCE" },
	{ "p2p-disabled", "NCCL_P2P_DISABLE", WHEN_TRUE, 0, NULL, VERDICT_WARNING,
	  "GPUs of a node may not talk directly (NCCL_P2P_DISABLE=%s) %s",
	  "Unset NCCL_P2P_DISABLE: NVLink is not used with it" },
	{ "p2p-disabled", "NCCL_P2P_LEVEL", WHEN_WORD, 0, "LOC", VERDICT_WARNING,
	  "GPUs of a node may not talk directly (NCCL_P2P_LEVEL=%s) %s",
	  "Unset NCCL_P2P_LEVEL, or set it to NVL, PIX, PXB, PHB or SYS" },
	{ "p2p-disabled", "NCCL_P2P_LEVEL", WHEN_WORD, 0, "0", VERDICT_WARNING,
	  "GPUs of a node may not talk directly (NCCL_P2P_LEVEL=%s) %s",
	  "Unset NCCL_P2P_LEVEL, or set it to NVL, PIX, PXB, PHB or SYS" },
	{ "shm-disabled", "NCCL_SHM_DISABLE", WHEN_TRUE, 0, NULL, VERDICT_WARNING,
	  "shared memory is turned off within nodes (NCCL_SHM_DISABLE=%s) %s",
	  "Unset NCCL_SHM_DISABLE; when /dev/shm is too small, make it larger instead" },
	{ "few-channels", "NCCL_MAX_NCHANNELS", WHEN_AT_MOST, 4, NULL, VERDICT_WARNING,
	  "NCCL may use %s channels at most (NCCL_MAX_NCHANNELS) %s",
	  "Unset NCCL_MAX_NCHANNELS: large messages need more channels" },
	{ "few-channels", "NCCL_MAX_CTAS", WHEN_AT_MOST, 4, NULL, VERDICT_WARNING,
	  "NCCL may use %s thread blocks at most (NCCL_MAX_CTAS) %s",
	  "Unset NCCL_MAX_CTAS: large messages need more" },
	{ "few-channels", "NCCL_MAX_P2P_NCHANNELS", WHEN_AT_MOST, 1, NULL, VERDICT_NOTE,
	  "Send and Recv may use %s channel only (NCCL_MAX_P2P_NCHANNELS) %s",
	  "Unset NCCL_MAX_P2P_NCHANNELS" },
	{ "few-channels", "NCCL_MIN_NCHANNELS", WHEN_SET, 0, NULL, VERDICT_NOTE,
	  "NCCL must use %s channels at least (NCCL_MIN_NCHANNELS) %s",
	  "Unset NCCL_MIN_NCHANNELS unless it was measured here: channels take GPU time from "
	  "compute" },
	{ "buffer-size", "NCCL_BUFFSIZE", WHEN_NOT, 4194304, NULL, VERDICT_NOTE,
	  "buffers have %s bytes instead of 4194304 (NCCL_BUFFSIZE) %s",
	  "Unset NCCL_BUFFSIZE unless it was measured here" },
	{ "algorithm-forced", "NCCL_ALGO", WHEN_SET, 0, NULL, VERDICT_WARNING,
	  "the algorithm is forced (NCCL_ALGO=%s) %s",
	  "Unset NCCL_ALGO: what is best differs by size and by operation" },
	{ "algorithm-forced", "NCCL_PROTO", WHEN_SET, 0, NULL, VERDICT_WARNING,
	  "the protocol is forced (NCCL_PROTO=%s) %s",
	  "Unset NCCL_PROTO: what is best differs by size and by operation" },
	{ "debug-left-on", "NCCL_DEBUG", WHEN_WORD, 0, "TRACE", VERDICT_WARNING,
	  "NCCL writes everything it does into a log (NCCL_DEBUG=%s) %s",
	  "Set NCCL_DEBUG=WARN for long jobs" },
	{ "debug-left-on", "NCCL_DEBUG", WHEN_WORD, 0, "INFO", VERDICT_NOTE,
	  "NCCL writes a debug log (NCCL_DEBUG=%s) %s", "Set NCCL_DEBUG=WARN for long jobs" },
	{ "ib-timeout", "NCCL_IB_TIMEOUT", WHEN_BELOW, 18, NULL, VERDICT_WARNING,
	  "the network gives up early (NCCL_IB_TIMEOUT=%s) %s",
	  "Unset NCCL_IB_TIMEOUT, or set it to 20 or more: each step doubles the time" },
	{ "ib-timeout", "NCCL_IB_RETRY_CNT", WHEN_BELOW, 7, NULL, VERDICT_WARNING,
	  "the network tries only %s times (NCCL_IB_RETRY_CNT) %s",
	  "Unset NCCL_IB_RETRY_CNT, which then is 7" },
	{ "launch-blocking", "CUDA_LAUNCH_BLOCKING", WHEN_TRUE, 0, NULL, VERDICT_WARNING,
	  "every CUDA launch waits for its end (CUDA_LAUNCH_BLOCKING=%s) %s",
	  "Unset CUDA_LAUNCH_BLOCKING: nothing overlaps with it" },
	{ "max-connections", "CUDA_DEVICE_MAX_CONNECTIONS", WHEN_AT_MOST, 7, NULL, VERDICT_NOTE,
	  "kernels share %s hardware queues (CUDA_DEVICE_MAX_CONNECTIONS) %s",
	  "Keep it at 1 only where the framework asks for it; else unset it" },
	{ "pxn-off", "NCCL_PXN_DISABLE", WHEN_TRUE, 0, NULL, VERDICT_NOTE,
	  "GPUs may not use network cards near to other GPUs (NCCL_PXN_DISABLE=%s) %s",
	  "Unset NCCL_PXN_DISABLE: all-to-all between many nodes is slower with it" },
	{ "nvls-off", "NCCL_NVLS_ENABLE", WHEN_FALSE, 0, NULL, VERDICT_NOTE,
	  "NVLink SHARP is turned off (NCCL_NVLS_ENABLE=%s) %s",
	  "Unset NCCL_NVLS_ENABLE where the machine has NVSwitches of the third generation or "
	  "later" },
	{ "mnnvl-off", "NCCL_MNNVL_ENABLE", WHEN_FALSE, 0, NULL, VERDICT_NOTE,
	  "NVLink between nodes is turned off (NCCL_MNNVL_ENABLE=%s) %s",
	  "Unset NCCL_MNNVL_ENABLE on machines with NVLink between nodes" },
	{ "torch-watchdog-off", "TORCH_NCCL_ASYNC_ERROR_HANDLING", WHEN_FALSE, 0, NULL,
	  VERDICT_WARNING,
	  "PyTorch does not end a job that hangs (TORCH_NCCL_ASYNC_ERROR_HANDLING=%s) %s",
	  "Unset TORCH_NCCL_ASYNC_ERROR_HANDLING, or watch the job by other means" },
	{ "torch-watchdog-off", "NCCL_ASYNC_ERROR_HANDLING", WHEN_FALSE, 0, NULL, VERDICT_WARNING,
	  "PyTorch does not end a job that hangs (NCCL_ASYNC_ERROR_HANDLING=%s) %s",
	  "Unset NCCL_ASYNC_ERROR_HANDLING, or watch the job by other means" },
	{ "torch-watchdog-off", "TORCH_NCCL_ENABLE_MONITORING", WHEN_FALSE, 0, NULL, VERDICT_NOTE,
	  "PyTorch does not watch its own watchdog (TORCH_NCCL_ENABLE_MONITORING=%s) %s",
	  "Unset TORCH_NCCL_ENABLE_MONITORING" },
	{ "torch-blocking-wait", "TORCH_NCCL_BLOCKING_WAIT", WHEN_TRUE, 0, NULL, VERDICT_WARNING,
	  "PyTorch waits on the host for every collective (TORCH_NCCL_BLOCKING_WAIT=%s) %s",
	  "Unset TORCH_NCCL_BLOCKING_WAIT: nothing overlaps with it" },
	{ "torch-blocking-wait", "NCCL_BLOCKING_WAIT", WHEN_TRUE, 0, NULL, VERDICT_WARNING,
	  "PyTorch waits on the host for every collective (NCCL_BLOCKING_WAIT=%s) %s",
	  "Unset NCCL_BLOCKING_WAIT: nothing overlaps with it" },
};

static bool fits(const struct variable_rule *rule, const char *value)
{
	int64_t number;

	switch (rule->when) {
	case WHEN_TRUE:
		return setup_is_true(value);
	case WHEN_FALSE:
		return setup_is_false(value);
	case WHEN_SET:
		return value[0] != '\0';
	case WHEN_AT_MOST:
		return setup_number(value, &number) && number > 0 && number <= rule->number;
	case WHEN_BELOW:
		return setup_number(value, &number) && number >= 0 && number < rule->number;
	case WHEN_NOT:
		return setup_number(value, &number) && number > 0 && number != rule->number;
	default:
		return strcasecmp(value, rule->word) == 0;
	}
}

/* What was counted in the log next to it: a line more of evidence. */
static void cite_channels(const struct setup *setup, struct verdict *verdict, uint32_t who)
{
	int64_t process = setup->whos[who].logged;

	if (setup->log == NULL || process < 0)
		return;
	for (int32_t i = setup->log->processes[process].last_comm; i >= 0;
	     i = setup->log->comms[i].previous) {
		const struct nccl_log_comm *comm = &setup->log->comms[i];

		if (comm->channels.line == 0)
			continue;
		setup_cite(setup, verdict, comm->channels, "%d coll channels, %d p2p channels",
			   comm->coll_channels, comm->p2p_channels);
		return;
	}
}

static void apply(const struct setup *setup, const struct variable_rule *rule)
{
	size_t count, first = setup_find_variable(setup, rule->variable, &count);
	const struct setup_variable *cited[SETUP_CITED];
	struct setup_group group = { .count = 0 };
	struct verdict *verdict;
	size_t shown = 0;
	char where[400], title[512];

	for (size_t i = first; i < first + count; i++) {
		if (!fits(rule, setup->variables[i].value))
			continue;
		setup_group_add(setup, &group, setup->variables[i].who);
		if (shown < SETUP_CITED)
			cited[shown++] = &setup->variables[i];
	}
	if (group.count == 0)
		return;
	verdict = setup_verdict(setup, rule->rule, rule->severity);
	setup_group_text(setup, &group, where, sizeof(where));
	/* The format is one of the table above, with these two words. */
	text_format(title, sizeof(title), rule->title, cited[0]->value, where);
	verdict_title(verdict, "%s", title);
	for (size_t i = 0; i < shown; i++)
		setup_cite_variable(setup, verdict, cited[i]);
	if (group.count > shown)
		verdict_evidence(verdict, "and so on %zu more", group.count - shown);
	if (strcmp(rule->rule, "few-channels") == 0)
		cite_channels(setup, verdict, group.first);
	verdict_advice(verdict, "%s", rule->advice);
	setup_blame(setup, verdict, &group);
}

/* A log of this many lines was not meant for a look at the start of a job. */
enum { LONG_LOG = 100000 };

static void find_long_log(const struct setup *setup)
{
	uint64_t lines = 0;
	const struct nccl_log_operation *most = NULL;
	struct verdict *verdict;

	for (size_t i = 0; i < setup->log->operation_count; i++) {
		lines += setup->log->operations[i].lines;
		if (most == NULL || setup->log->operations[i].lines > most->lines)
			most = &setup->log->operations[i];
	}
	if (lines < LONG_LOG || most == NULL)
		return;
	verdict = setup_verdict(setup, "debug-left-on", VERDICT_WARNING);
	verdict_title(verdict, "NCCL writes a line for every operation: %llu so far",
		      (unsigned long long)lines);
	setup_cite(setup, verdict, most->first, "%s: the first of %llu lines", most->function,
		   (unsigned long long)most->lines);
	verdict_advice(verdict, "Leave COLL, CALL and ALL out of NCCL_DEBUG_SUBSYS, or set "
				"NCCL_DEBUG=WARN");
}

void setup_find_variables(const struct setup *setup)
{
	for (size_t i = 0; i < ARRAY_LENGTH(rules); i++)
		apply(setup, &rules[i]);
	if (setup->log != NULL)
		find_long_log(setup);
}
