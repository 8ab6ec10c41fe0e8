/*
 * A job that creates and destroys communicators all day. With `reload` it has one at a time, so
 * that the plugin is loaded and unloaded with each. Prints what it issued and how its memory grew
 * between the first fifth and the end.
 *
 *	process_churn comms|reload COUNT [RELEASE [stuck]]	stuck: the disk takes no more than the beginning of a file
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/host.h"
#include "tests/process/process_disk.h"

/* Communicators alive at once; operations on each. */
enum { ALIVE = 8, OPERATIONS = 6, BATCH = 64 };

static void die(const char *what)
{
	fprintf(stderr, "process_churn: %s\n", what);
	exit(3);
}

/* A line of /proc/self/status, in KiB. */
static long memory_kib(const char *name)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[256];
	long kib = -1;

	while (status != NULL && fgets(line, sizeof(line), status) != NULL)
		if (strncmp(line, name, strlen(name)) == 0)
			kib = strtol(line + strlen(name) + 1, NULL, 10);
	if (status != NULL)
		fclose(status);
	return kib;
}

static int is_mapped(const char *plugin)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[1024];
	int found = 0;

	while (maps != NULL && fgets(line, sizeof(line), maps) != NULL)
		found |= strstr(line, plugin) != NULL;
	if (maps != NULL)
		fclose(maps);
	return found;
}

static struct host_comm *make_comm(struct host *host, long number)
{
	struct host_comm_config config = { .hash = (uint64_t)number + 1,
					   .nnodes = 1 + (int)(number & 1),
					   .nranks = 4,
					   .rank = 2 };
	struct host_comm *comm;

	if (host_comm_new(host, &comm, &config) != OK)
		die("no communicator");
	return comm;
}

static void play(struct host_comm *comm, long number)
{
	struct host_user user = { 0 };

	for (int i = 0; i < OPERATIONS; i++) {
		struct host_op op = host_op_make(comm, i < 4 ? OP_ALL_REDUCE : OP_SEND,
						 UINT64_C(1) << number % 20, OP_FLOAT16);

		op.channels = 2;
		op.has_network = number & 1;
		if (host_play(&user, &op) != OK)
			die("cannot play");
	}
}

/* Some communicators with their own library; returns how many operations were shown. */
static uint64_t play_batch(const struct host_config *config, long first, long count, long alive)
{
	struct host_comm *comms[ALIVE] = { NULL };
	struct host_counts counts;
	struct host *host;

	if (host_new(&host, config) != OK)
		die("no host");
	for (long i = 0; i < count + alive; i++) {
		struct host_comm **place = &comms[i % alive];

		if (*place != NULL)
			host_comm_destroy(*place);
		*place = NULL;
		if (i >= count)
			continue;
		*place = make_comm(host, first + i);
		if (host_plugin(host)->version == 0)
			die(host_load_error(host));
		play(*place, first + i);
	}
	host_counts(host, &counts);
	host_free(host);
	return counts.shown;
}

int main(int argc, char **argv)
{
	struct host_config config = { .plugin = getenv("PLUGIN"), .release = HOST_NCCL_2_28 };
	long count = argc > 2 ? strtol(argv[2], NULL, 10) : 0, made = 0, early = -1;
	long batch = argc > 1 && strcmp(argv[1], "reload") == 0 ? 1 : BATCH;
	uint64_t issued = 0;

	if (argc > 4 && strcmp(argv[4], "stuck") == 0) {
		disk.room = 64 * 1024;
		disk_freeze();
		/* The plugin is not finalized before the end. */
		batch = count;
	}
	if (count <= 0 || (argc > 3 && host_release_parse(argv[3], &config.release) != OK))
		die("usage: process_churn comms|reload COUNT [RELEASE [stuck]]");
	while (made < count) {
		long some = count - made < batch ? count - made : batch;

		issued += play_batch(&config, made, some, batch == 1 ? 1 : ALIVE);
		made += some;
		if (early == -1 && made >= count / 5)
			early = memory_kib("RssAnon:") + memory_kib("RssShmem:");
	}
	printf("pid=%d\nissued=%llu\nmade=%ld\n", getpid(), (unsigned long long)issued, made);
	printf("growth_kib=%ld\n", memory_kib("RssAnon:") + memory_kib("RssShmem:") - early);
	printf("threads=%ld\nmapped=%d\n", memory_kib("Threads:"), is_mapped("ringside"));
	return 0;
}
