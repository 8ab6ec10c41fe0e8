#include "capture/process_info.h"

#include <string.h>
#include <unistd.h>

#include "abi/abi_common.h"
#include "base/text.h"
#include "op/op_names.h"

/* One "key=value" line; line breaks in a value become blanks. */
static void add_line(const char *key, const char *value)
{
	uint64_t *used = &recorder.region.header->info_bytes;
	char line[1024];
	size_t length;

	text_format(line, sizeof(line) - 1, "%s=%s", key, value);
	for (char *at = line; *at != '\0'; at++)
		if (*at == '\n' || *at == '\r')
			*at = ' ';
	length = strlen(line);
	line[length++] = '\n';
	if (*used + length > REGION_INFO_BYTES)
		return;
	memcpy(recorder.region.info + *used, line, length);
	/* Readers may look already, see process_info_add_message(): a line is there whole or not at all. */
	store_release(used, *used + length);
}

static void add_number(const char *key, uint64_t value)
{
	char text[24];

	text_format(text, sizeof(text), "%llu", (unsigned long long)value);
	add_line(key, text);
}

static void add_labels(const char *labels)
{
	char list[sizeof(((struct settings *)NULL)->labels)], key[128], *at = list, *pair;

	text_copy(list, sizeof(list), labels);
	while ((pair = strsep(&at, ",")) != NULL) {
		char *equals = strchr(pair, '=');

		if (equals == NULL)
			continue;
		*equals = '\0';
		text_format(key, sizeof(key), "label.%s", pair);
		add_line(key, equals + 1);
	}
}

static unsigned int messages;

void process_info_add_message(const char *line)
{
	char key[24], text[1000];

	text_format(key, sizeof(key), "message.%u", ++messages);
	text_format(text, sizeof(text), "%.*s", (int)strcspn(line, "\n"), line);
	add_line(key, text);
}

static void add_messages(const char *lines)
{
	messages = 0;
	for (const char *at = lines, *stop; (stop = strchr(at, '\n')) != NULL; at = stop + 1)
		process_info_add_message(at);
}

/* Whole lines only, with room left for the last one: how many are missing. */
static void add_environment(const struct environment *environment)
{
	uint64_t *used = &recorder.region.header->info_bytes;
	const char *at = environment->text, *end = at + environment->bytes, *stop;
	unsigned int left_out = environment->left_out;

	while (at < end && (stop = memchr(at, '\n', (size_t)(end - at))) != NULL) {
		size_t length = (size_t)(stop + 1 - at);

		if (*used + length + sizeof("env_left_out=4294967295") > REGION_INFO_BYTES)
			left_out++;
		else {
			memcpy(recorder.region.info + *used, at, length);
			*used += length;
		}
		at += length;
	}
	if (left_out > 0)
		add_number("env_left_out", left_out);
}

static const char *region_kind_name(enum region_kind kind)
{
	switch (kind) {
	case REGION_KIND_SHM:
		return "shm";
	case REGION_KIND_SHM_SMALL:
		return "shm-small";
	case REGION_KIND_MEMFD:
		return "memfd";
	default:
		return "private";
	}
}

void process_info_write(const struct process_info *process)
{
	const struct identity *identity = &process->identity;
	const struct settings *settings = &process->settings;
	const struct mask_choice *choice = &process->choice;

	recorder.region.header->info_bytes = 0;
	add_line("host", identity->host);
	add_line("boot_id", identity->boot_id);
	add_number("pid", identity->pid);
	add_number("pid_namespace", identity->pid_namespace);
	add_number("start_ticks", identity->start_ticks);
	add_number("uid", geteuid());
	add_line("exe", identity->exe);
	add_line("job", identity->job);
	add_line("rank", identity->rank);
	add_line("local_rank", identity->local_rank);
	add_line("world_size", identity->world_size);
	add_line("version", RINGSIDE_VERSION);
	add_line("mode", op_mode_name(settings->mode));
	add_number("interface", process->interface);
	add_line("region", recorder.region.path);
	add_line("region_kind", region_kind_name(recorder.region.kind));
	add_line("region_reason", recorder.region.reason);
	add_line("trace", process->trace);
	if (settings->inspector.is_on)
		add_line("inspector", settings->inspector.dir);
	add_number("buffer", settings->buffer);
	add_number("quota", settings->quota);
	add_line("kernel_events", kernel_events_name(choice->kernel));
	add_line("kernel_events_reason", choice->kernel_reason);
	add_number("events", (uint64_t)choice->mask);
	add_number("started_wall_ns", recorder.region.header->first_anchor.wall_ns);
	add_labels(settings->labels);
	add_messages(process->messages);
	add_environment(&process->environment);
}

void process_info_log(const struct process_info *process, const struct comm_start *start)
{
	const struct settings *settings = &process->settings;
	const struct mask_choice *choice = &process->choice;

	start->log(
		ABI_LOG_INFO, ABI_LOG_SUBSYSTEM_INIT | ABI_LOG_SUBSYSTEM_PROFILE, "ringside", 0,
		"Ringside %s: mode %s, region %s (%s%s%s), trace %s, buffer %llu KiB, quota %llu "
		"MiB, kernel events %s (%s), events 0x%x, job %s, Inspector's files in %s",
		RINGSIDE_VERSION, op_mode_name(recorder.region.header->mode),
		recorder.region.path[0] != '\0' ? recorder.region.path : "none",
		region_kind_name(recorder.region.kind),
		recorder.region.reason[0] != '\0' ? ": " : "", recorder.region.reason,
		process->trace[0] != '\0' ? process->trace : "none",
		(unsigned long long)settings->buffer >> 10,
		(unsigned long long)settings->quota >> 20, kernel_events_name(choice->kernel),
		choice->kernel_reason, (unsigned int)choice->mask, process->identity.job,
		settings->inspector.is_on ? settings->inspector.dir : "none");
}
