/* Files for node-exporter's textfile collector: one per process. */
#include "agent/agent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/text.h"
#include "output/metrics.h"

static const char prefix[] = "ringside-";
static const char suffix[] = ".prom";
static const char unfinished[] = ".new";

/* ---- names ----------------------------------------------------------------------------------- */

void agent_textfile_name(const struct recording_process *process,
			 char name[static AGENT_TEXTFILE_NAME])
{
	char gpu[64] = "gpu", namespace[32] = "";

	/* The first processes of two containers, started together, have the same pid and start. */
	if (process->pid_namespace != 0 && process->pid_namespace != file_proc_namespace("self"))
		text_format(namespace, sizeof(namespace), "-ns%" PRIu64, process->pid_namespace);
	for (size_t i = 0; i < process->comm_count; i++) {
		const struct comm_info *info = &process->comms[i].info;

		if (info->gpu_uuid[0]) {
			text_from_field(gpu, sizeof(gpu), info->gpu_uuid, sizeof(info->gpu_uuid));
			break;
		}
		if (info->gpu >= 0) {
			text_format(gpu, sizeof(gpu), "gpu%d", (int)info->gpu);
			break;
		}
	}
	for (char *at = gpu; *at != '\0'; at++)
		if (!(*at >= 'a' && *at <= 'z') && !(*at >= 'A' && *at <= 'Z') &&
		    !(*at >= '0' && *at <= '9') && *at != '-')
			*at = '_';
	text_format(name, AGENT_TEXTFILE_NAME, "%s%s%s-%" PRId64 "-%" PRIu64 "%s", prefix, gpu,
		    namespace, process->pid, process->start_ticks, suffix);
}

/* Digits that end at `end`, after a dash. Returns the position of the dash, or NULL. */
static const char *number_before(const char *start, const char *end)
{
	const char *at = end;

	while (at > start && at[-1] >= '0' && at[-1] <= '9')
		at--;
	return at < end && at > start && at[-1] == '-' ? at - 1 : NULL;
}

static const char *name_without(const char *start, const char *end, const char *ending)
{
	size_t length = strlen(ending);

	return (size_t)(end - start) >= length && memcmp(end - length, ending, length) == 0
		       ? end - length
		       : NULL;
}

bool agent_textfile_is_ours(const char *name)
{
	const char *end = name + strlen(name), *cut;

	if (strncmp(name, prefix, strlen(prefix)) != 0)
		return false;
	name += strlen(prefix);
	cut = name_without(name, end, unfinished);
	end = name_without(name, cut ? cut : end, suffix);
	end = end ? number_before(name, end) : NULL;
	end = end ? number_before(name, end) : NULL;
	return end && end > name;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* By name, for bsearch. */
static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Removes our files except for those in the list. */
static void remove_others(const struct agent_textfile *to, const void *keep, size_t count)
{
	int fd = openat(to->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd == -1 ? NULL : fdopendir(fd);
	struct dirent *entry;

	while (list && (entry = readdir(list)) != NULL)
		if (agent_textfile_is_ours(entry->d_name) &&
		    !(count &&
		      bsearch(entry->d_name, keep, count, AGENT_TEXTFILE_NAME, compare_names)))
			unlinkat(to->fd, entry->d_name, 0);
	if (list)
		closedir(list);
	else if (fd != -1)
		close(fd);
}

static bool put_file(const struct agent_textfile *to, const char *name, const struct sink *text)
{
	char beside[AGENT_TEXTFILE_NAME + 8];
	struct sink sink;
	bool is_good;
	int fd;

	text_format(beside, sizeof(beside), "%s%s", name, unfinished);
	unlinkat(to->fd, beside, 0);
	fd = openat(to->fd, beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd == -1)
		return false;
	sink_init_fd(&sink, fd);
	sink_write(&sink, text->bytes, text->used);
	is_good = sink_flush(&sink) == OK && fchmod(fd, 0644) == 0;
	sink_release(&sink);
	if (close(fd) == -1 || !is_good || renameat(to->fd, beside, to->fd, name) == -1) {
		int error = errno;

		unlinkat(to->fd, beside, 0);
		errno = error;
		return false;
	}
	return true;
}

static bool write_process(const struct agent_textfile *to, const struct live *live, size_t index,
			  const char *name)
{
	struct sink text;
	bool is_good;

	sink_init_memory(&text);
	metrics_write(&text, METRICS_TEXT, live, NULL, (long)index);
	errno = ENOMEM;
	is_good = text.status == OK && text.bytes && put_file(to, name, &text);
	sink_release(&text);
	return is_good;
}

void agent_textfile_write(struct agent_textfile *to, const struct live *live, uint64_t now_ns)
{
	const struct recording *recording = live->job.recording;
	size_t count = recording ? recording->count : 0, failed = 0;
	char(*names)[AGENT_TEXTFILE_NAME] = calloc(count + 1, sizeof(*names));
	int error = ENOMEM;

	to->next_ns = now_ns + to->interval_ns;
	for (size_t i = 0; names && i < count; i++) {
		agent_textfile_name(recording->processes[i], names[i]);
		if (!write_process(to, live, i, names[i])) {
			error = errno;
			failed++;
		}
	}
	if (names) {
		qsort(names, count, sizeof(*names), compare_names);
		remove_others(to, names, count);
		to->count = count;
	}
	if ((names == NULL || failed) && !to->is_failing)
		serve_log(SERVE_ERROR, "cannot write files in %s: %s", to->directory,
			  strerror(error));
	else if (names && !failed && to->is_failing)
		serve_log(SERVE_NOTICE, "writing files in %s works again", to->directory);
	to->is_failing = names == NULL || failed;
	free(names);
}

int agent_textfile_open(struct agent_textfile *to, const char *directory, uint64_t interval_ns)
{
	*to = (struct agent_textfile){ .fd = -1, .interval_ns = interval_ns };
	if (directory == NULL)
		return 0;
	to->fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (to->fd == -1 || faccessat(to->fd, ".", W_OK | X_OK, AT_EACCESS) == -1)
		return serve_log(SERVE_ERROR, "cannot write files in %s: %s", directory,
				 strerror(errno));
	to->directory = directory;
	remove_others(to, NULL, 0);
	return 0;
}

void agent_textfile_close(struct agent_textfile *to)
{
	if (to->directory)
		remove_others(to, NULL, 0);
	if (to->fd != -1)
		close(to->fd);
	to->fd = -1;
	to->directory = NULL;
}
