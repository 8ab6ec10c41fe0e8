/* Counters of InfiniBand ports and network interfaces, and what the kernel said of GPUs, network and memory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/klog.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/text.h"
#include "programs/cli/bundle_parts.h"
#include "programs/cli/cli_memory.h"

enum {
	COUNTERS_MOST = 50000, /* files of one tree */
	VALUE_MOST = 200,
	LOG_MOST = 256 * 1024,
	RECORD_MOST = 8192,
};

/* ---- trees of small files --------------------------------------------------------------------- */

struct tree {
	struct sink sink;
	size_t files;
	size_t unreadable;
};

/* One line: its path and its first line. */
static void write_file(struct tree *tree, int directory, const char *name, const char *shown)
{
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char value[VALUE_MOST];
	ssize_t got = fd == -1 ? -1 : read(fd, value, sizeof(value) - 1);

	if (fd != -1)
		close(fd);
	if (got < 0) {
		tree->unreadable++;
		return;
	}
	value[got] = '\0';
	value[strcspn(value, "\n")] = '\0';
	sink_format(&tree->sink, "%s %s\n", shown, value);
	tree->files++;
}

static int by_name(const struct dirent **one, const struct dirent **other)
{
	return strcmp((*one)->d_name, (*other)->d_name);
}

static int is_shown(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* All files of a directory, in order. */
static void write_directory(struct tree *tree, const char *path, const char *shown)
{
	struct dirent **list = NULL;
	int count = scandir(path, &list, is_shown, by_name);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < count; i++) {
		char whole[600];

		text_format(whole, sizeof(whole), "%s/%s", shown, list[i]->d_name);
		if (fd != -1 && tree->files < COUNTERS_MOST)
			write_file(tree, fd, list[i]->d_name, whole);
		free(list[i]);
	}
	free(list);
	if (fd != -1)
		close(fd);
}

typedef void visit_entry(struct tree *tree, const char *path, const char *shown);

static int each_entry(struct tree *tree, const char *path, const char *shown, visit_entry *visit)
{
	struct dirent **list = NULL;
	int count = scandir(path, &list, is_shown, by_name);

	for (int i = 0; i < count; i++) {
		char below[600], name[600];

		text_format(below, sizeof(below), "%s/%s", path, list[i]->d_name);
		text_format(name, sizeof(name), "%s%s%s", shown, shown[0] ? "/" : "",
			    list[i]->d_name);
		visit(tree, below, name);
		free(list[i]);
	}
	free(list);
	return count;
}

static void write_some(struct tree *tree, const char *path, const char *shown,
		       const char *const *names, size_t count)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (size_t i = 0; fd != -1 && i < count; i++) {
		char whole[600];

		text_format(whole, sizeof(whole), "%s/%s", shown, names[i]);
		write_file(tree, fd, names[i], whole);
	}
	if (fd != -1)
		close(fd);
}

static void write_port(struct tree *tree, const char *path, const char *shown)
{
	static const char *const names[] = { "state", "phys_state", "rate", "link_layer" };
	char below[700], name[700];

	write_some(tree, path, shown, names, ARRAY_LENGTH(names));
	text_format(below, sizeof(below), "%s/counters", path);
	text_format(name, sizeof(name), "%s/counters", shown);
	write_directory(tree, below, name);
	text_format(below, sizeof(below), "%s/hw_counters", path);
	text_format(name, sizeof(name), "%s/hw_counters", shown);
	write_directory(tree, below, name);
}

static void write_device(struct tree *tree, const char *path, const char *shown)
{
	static const char *const names[] = { "fw_ver", "hca_type", "board_id" };
	char below[700];

	write_some(tree, path, shown, names, ARRAY_LENGTH(names));
	text_format(below, sizeof(below), "%s/ports", path);
	each_entry(tree, below, shown, write_port);
}

static void write_interface(struct tree *tree, const char *path, const char *shown)
{
	static const char *const names[] = { "operstate", "speed", "mtu", "carrier_changes" };
	char below[700];

	write_some(tree, path, shown, names, ARRAY_LENGTH(names));
	text_format(below, sizeof(below), "%s/statistics", path);
	write_directory(tree, below, shown);
}

static void add_tree(struct bundle_archive *archive, const char *path, const char *name,
		     const char *about, visit_entry *visit)
{
	struct tree tree = { .files = 0 };
	int count;

	sink_init_memory(&tree.sink);
	count = each_entry(&tree, path, "", visit);
	if (count <= 0) {
		bundle_gap(archive, name, "%s: %s", path,
			   count == -1 ? strerror(errno) : "nothing is there");
		sink_release(&tree.sink);
		return;
	}
	bundle_add_sink(archive, name, about, &tree.sink);
	if (tree.unreadable > 0)
		bundle_gap(archive, name, "%zu counters below %s cannot be read", tree.unreadable,
			   path);
	if (tree.files == COUNTERS_MOST)
		bundle_gap(archive, name, "what comes after %d counters", COUNTERS_MOST);
}

void bundle_counters(struct bundle_archive *archive)
{
	add_tree(archive, "/sys/class/infiniband", "node/infiniband.txt",
		 "state and counters of each InfiniBand and RoCE port", write_device);
	add_tree(archive, "/sys/class/net", "node/interfaces.txt",
		 "state and counters of each network interface", write_interface);
}

/* ---- the kernel's log ------------------------------------------------------------------------- */

static bool is_worth(const char *line)
{
	static const char *const words[] = { "NVRM",	  "Xid",
					     "nvidia",	  "nvlink",
					     "mlx",	  "infiniband",
					     "ib_",	  "Link is Down",
					     "link down", "Out of memory",
					     "oom-kill",  "Killed process",
					     "hung_task", "blocked for more",
					     "AER:",	  "MCE" };

	for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
		if (strcasestr(line, words[i]))
			return true;
	return false;
}

static void keep_line(struct sink *sink, const char *line)
{
	if (!is_worth(line))
		return;
	for (; *line != '\0'; line++)
		sink_byte(sink, (unsigned char)*line < 0x20 || *line == 0x7f ? '?' : *line);
	sink_byte(sink, '\n');
}

/* Records of /dev/kmsg: "priority,number,microseconds,flags;text\n", then lines with a blank. */
static bool read_records(struct sink *sink)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char record[RECORD_MOST + 1];
	ssize_t got;

	if (fd == -1)
		return false;
	lseek(fd, 0, SEEK_SET);
	/* EPIPE: that one was overwritten meanwhile. */
	while ((got = read(fd, record, RECORD_MOST)) > 0 ||
	       (got == -1 && (errno == EPIPE || errno == EINTR))) {
		if (got <= 0)
			continue;
		record[got] = '\0';
		record[strcspn(record, "\n")] = '\0';
		keep_line(sink, record);
	}
	got = got == -1 && errno != EAGAIN ? -1 : 0;
	close(fd);
	return got == 0;
}

static bool read_ring(struct sink *sink)
{
	int size = klogctl(10, NULL, 0); /* how large it is */
	char *bytes, *rest = NULL;
	int got;

	if (size <= 0 || size > 64 * 1024 * 1024)
		return false;
	bytes = cli_realloc(NULL, (size_t)size + 1);
	got = klogctl(3, bytes, size); /* all of it */
	if (got >= 0) {
		bytes[got] = '\0';
		for (char *line = strtok_r(bytes, "\n", &rest); line;
		     line = strtok_r(NULL, "\n", &rest))
			keep_line(sink, line);
	}
	free(bytes);
	return got >= 0;
}

/* What is newer matters more: the beginning goes. */
static const char *newest_lines(const struct sink *sink)
{
	const char *text = sink_string(sink), *end;

	if (sink->used <= LOG_MOST)
		return text;
	end = strchr(text + sink->used - LOG_MOST, '\n');
	return end ? end + 1 : text + sink->used;
}

void bundle_kernel_log(struct bundle_archive *archive)
{
	static const char name[] = "node/kernel-log.txt";
	static const char about[] =
		"lines of the kernel's log about GPUs (Xid), network and memory";
	const char *text;
	struct sink sink;

	sink_init_memory(&sink);
	if (!read_records(&sink) && !read_ring(&sink)) {
		bundle_gap(archive, name, "the kernel's log: %s; root may read it",
			   strerror(errno));
		sink_release(&sink);
		return;
	}
	if (sink.used == 0)
		sink_text(&sink, "The kernel's log was read and has no such line.\n");
	text = newest_lines(&sink);
	if (sink.status == OK)
		bundle_add(archive, name, about, text, strlen(text));
	if (text != sink_string(&sink))
		bundle_gap(archive, name, "what is older than the last %d KiB", LOG_MOST / 1024);
	sink_release(&sink);
}
