/* Reads /proc of the processes below a command: libraries, environment, machine. */
#include "cmds/run_processes.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/attributes.h"
#include "common/file.h"
#include "common/nccl_interface.h"
#include "common/text.h"

enum { PARENTS_MAX = 64, ENVIRON_BYTES = 1 << 18, LINE_BYTES = 4352 };

static pid_t parent_of(pid_t pid)
{
	char path[64], text[1024];
	const char *end;
	int parent = 0;

	text_format(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (!file_read_text(path, text, sizeof(text)))
		return 0;
	end = strrchr(text, ')');
	return end != NULL && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

bool run_is_below(pid_t command, int64_t pid)
{
	pid_t at = (pid_t)pid;

	for (int i = 0; i < PARENTS_MAX && at > 1; i++) {
		if (at == command)
			return true;
		at = parent_of(at);
	}
	return false;
}

/* Their processes are started by a daemon, or on another host. */
static bool starts_elsewhere(const char *program)
{
	static const char *const names[] = { "srun",	"docker",     "podman",	 "nerdctl",
					     "kubectl", "ssh",	      "pdsh",	 "flux",
					     "jsrun",	"aprun",      "bsub",	 "sbatch",
					     "qsub",	"mpirun",     "mpiexec", "mpiexec.hydra",
					     "prterun", "systemd-run" };

	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		if (strcmp(program, names[i]) == 0)
			return true;
	return false;
}

/* What a process has mapped. */
struct maps {
	char nccl[160]; /* the library; "": none */
	bool has_plugin;
	bool has_comm; /* memory that NCCL shares between the ranks of a host */
};

static void read_maps(pid_t pid, struct maps *maps)
{
	char path[64], line[LINE_BYTES];
	FILE *file;

	*maps = (struct maps){ .has_plugin = false };
	text_format(path, sizeof(path), "/proc/%d/maps", (int)pid);
	file = fopen(path, "re");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		char *name = strchr(line, '/');
		const char *last;

		if (name == NULL)
			continue;
		name[strcspn(name, "\n")] = '\0';
		last = strrchr(name, '/') + 1;
		if (strncmp(last, "libnccl.so", strlen("libnccl.so")) == 0)
			text_copy(maps->nccl, sizeof(maps->nccl), name);
		maps->has_plugin |= strncmp(last, CLI_PLUGIN_FILE, strlen(CLI_PLUGIN_FILE)) == 0;
		maps->has_comm |= strncmp(name, "/dev/shm/nccl-", strlen("/dev/shm/nccl-")) == 0;
	}
	if (file != NULL)
		fclose(file);
}

/* The value that the process was started with; "": none. False: unknown. */
static bool read_variable(pid_t pid, const char *name, char *value, size_t size)
{
	char path[64], *bytes = malloc(ENVIRON_BYTES);
	size_t length = strlen(name), got = 0;
	int fd;

	value[0] = '\0';
	text_format(path, sizeof(path), "/proc/%d/environ", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd != -1 && bytes != NULL)
		file_pread_some(fd, bytes, ENVIRON_BYTES - 1, 0, &got);
	if (fd != -1)
		close(fd);
	if (bytes != NULL)
		bytes[got] = '\0';
	for (size_t at = 0; at < got; at += strlen(bytes + at) + 1)
		if (strncmp(bytes + at, name, length) == 0 && bytes[at + length] == '=')
			text_copy(value, size, bytes + at + length + 1);
	free(bytes);
	return got > 0;
}

/* EM_X86_64, ...; 0: unknown. */
static unsigned int machine_of(const char *path)
{
	unsigned char head[20] = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd != -1 ? read(fd, head, sizeof(head)) : -1;

	if (fd != -1)
		close(fd);
	return got == (ssize_t)sizeof(head) && memcmp(head, ELFMAG, SELFMAG) == 0
		       ? head[18] | (unsigned int)head[19] << 8
		       : 0;
}

/* "libnccl.so.2.18.5"; 0: the name does not have it. */
static uint32_t version_of(const char *path)
{
	const char *at = strstr(path, "libnccl.so.");
	unsigned int major, minor, patch;

	if (at == NULL || sscanf(at, "libnccl.so.%u.%u.%u", &major, &minor, &patch) != 3 ||
	    major != 2 || minor > 99 || patch > 99)
		return 0;
	return major * 10000 + minor * 100 + patch;
}

static enum run_state judge(pid_t pid, struct run_processes *one)
{
	char path[64], value[160];
	struct maps maps;
	unsigned int machine, ours;

	read_maps(pid, &maps);
	text_copy(one->value, sizeof(one->value), maps.nccl);
	one->version = version_of(maps.nccl);
	if (maps.has_plugin)
		return RUN_NO_REGION;
	if (maps.nccl[0] == '\0' && !maps.has_comm)
		return RUN_NO_NCCL;
	if (one->version != 0 && op_interface_of_release(one->version) == 0)
		return RUN_TOO_OLD;
	if (read_variable(pid, "NCCL_PROFILER_PLUGIN", value, sizeof(value)) &&
	    !cli_plugin_is_ours(value)) {
		if (value[0] == '\0')
			return RUN_UNCONFIGURED;
		text_copy(one->value, sizeof(one->value), value);
		return RUN_OTHER_PLUGIN;
	}
	text_format(path, sizeof(path), "/proc/%d/exe", (int)pid);
	machine = machine_of(path);
	/* The plugin was built with this program. */
	ours = machine_of("/proc/self/exe");
	if (machine != 0 && ours != 0 && machine != ours)
		return RUN_OTHER_CPU;
	if (!maps.has_comm)
		return RUN_NO_COMM;
	return maps.nccl[0] == '\0' ? RUN_STATIC : RUN_NOT_LOADED;
}

void run_processes_look(struct run_processes *processes, pid_t command)
{
	DIR *all = opendir("/proc");
	const struct dirent *entry;

	*processes = (struct run_processes){ .state = RUN_NO_NCCL };
	while (all != NULL && (entry = readdir(all)) != NULL) {
		struct run_processes one = { .state = RUN_NO_NCCL };
		char path[64];

		if (text_number(entry->d_name, 1, INT32_MAX, &one.pid) != OK ||
		    !run_is_below(command, one.pid))
			continue;
		text_format(path, sizeof(path), "/proc/%" PRId64 "/comm", one.pid);
		if (file_read_text(path, one.program, sizeof(one.program)))
			one.program[strcspn(one.program, "\n")] = '\0';
		one.state = judge((pid_t)one.pid, &one);
		one.count = processes->count + 1;
		one.is_elsewhere = processes->is_elsewhere || starts_elsewhere(one.program);
		if (one.state > processes->state) {
			*processes = one;
		} else {
			processes->count = one.count;
			processes->is_elsewhere = one.is_elsewhere;
		}
	}
	if (all != NULL)
		closedir(all);
}

void run_processes_text(char *text, size_t size, const struct run_processes *processes)
{
	char who[96] = "", nccl[200] = "NCCL", clean[200];

	text_from_field(clean, sizeof(clean), processes->program, strlen(processes->program));
	text_format(who, sizeof(who), "pid %" PRId64 " (%.40s)", processes->pid, clean);
	text_from_field(clean, sizeof(clean), processes->value, strlen(processes->value));
	if (processes->version != 0)
		text_format(nccl, sizeof(nccl), "NCCL %u.%u.%u", processes->version / 10000,
			    processes->version / 100 % 100, processes->version % 100);
	switch (processes->state) {
	case RUN_NO_NCCL:
		text_append(text, size, "none of its processes on this host has loaded NCCL");
		break;
	case RUN_NO_COMM:
		text_append(text, size,
			    "%s has loaded %s, which has loaded no profiler plugin: no "
			    "communicator was created, or "
			    "its loader did not find %s",
			    who, nccl, CLI_PLUGIN_FILE);
		break;
	case RUN_UNCONFIGURED:
		text_append(text, size,
			    "%s uses %s, but NCCL_PROFILER_PLUGIN is not in its environment: the "
			    "launcher must pass "
			    "it on",
			    who, nccl);
		break;
	case RUN_OTHER_PLUGIN:
		text_append(text, size,
			    "%s has another profiler plugin: NCCL_PROFILER_PLUGIN=%.100s", who,
			    clean);
		break;
	case RUN_OTHER_CPU:
		text_append(
			text, size,
			"%s is a program for another processor than %s: install the plugin for it",
			who, CLI_PLUGIN_FILE);
		break;
	case RUN_TOO_OLD:
		text_append(text, size,
			    "%s uses %s, which has no profiler plugins: use NCCL 2.23 or later "
			    "(%.120s)",
			    who, nccl, clean);
		break;
	case RUN_STATIC:
		text_append(text, size,
			    "%s uses an NCCL that is linked into the program and did not load the "
			    "plugin: it is older "
			    "than 2.23, or the program cannot load libraries",
			    who);
		break;
	case RUN_NOT_LOADED:
		text_append(text, size,
			    "%s has communicators of %s, which did not load %s: NCCL_DEBUG=INFO "
			    "shows why (%.120s)",
			    who, nccl, CLI_PLUGIN_FILE, clean);
		break;
	case RUN_NO_REGION:
		text_append(text, size,
			    "%s has loaded the plugin, which records nothing: its standard error "
			    "says why",
			    who);
		break;
	}
}
