#include "region/region_alive.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

/* A small file of /proc, terminated; false when it cannot be read. */
static bool read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd == -1)
		return false;
	got = read(fd, text, size - 1);
	close(fd);
	text[got > 0 ? got : 0] = '\0';
	return got > 0;
}

void region_boot_id(char boot_id[40])
{
	char text[64];

	memset(boot_id, 0, 40);
	if (!read_text("/proc/sys/kernel/random/boot_id", text, sizeof(text)))
		return;
	text[strcspn(text, "\n")] = '\0';
	text_copy(boot_id, 40, text);
}

/* "pid:[4026531836]" */
static uint64_t namespace_of(const char *pid)
{
	char path[64], link[64];
	unsigned long long inode = 0;
	ssize_t length;

	text_format(path, sizeof(path), "/proc/%s/ns/pid", pid);
	length = readlink(path, link, sizeof(link) - 1);
	if (length <= 0)
		return 0;
	link[length] = '\0';
	return sscanf(link, "pid:[%llu]", &inode) == 1 ? inode : 0;
}

uint64_t region_own_pid_namespace(void)
{
	return namespace_of("self");
}

/* Field 22 of stat; 0 when there is no such process any more: gone, or a zombie. The name in field 2
 * may hold anything, so counting begins behind its last parenthesis. *state is field 3. */
static uint64_t start_ticks_of(const char *pid, char *state)
{
	char path[64], text[1024];
	char *at;

	*state = 0;
	text_format(path, sizeof(path), "/proc/%s/stat", pid);
	if (!read_text(path, text, sizeof(text)))
		return 0;
	at = strrchr(text, ')');
	if (at == NULL || at[1] == '\0' || strchr("ZXx", at[2]) != NULL)
		return 0;
	*state = at[2];
	for (int field = 2; field < 22 && at != NULL; field++)
		at = strchr(at + 1, ' ');
	return at != NULL ? strtoull(at + 1, NULL, 10) : 0;
}

/* The pid which a process has in its own namespace: the last number of NSpid. */
static uint64_t own_pid_of(const char *pid)
{
	char path[64], text[4096];
	char *line, *last;

	text_format(path, sizeof(path), "/proc/%s/status", pid);
	if (!read_text(path, text, sizeof(text)))
		return 0;
	line = strstr(text, "\nNSpid:");
	if (line == NULL)
		return 0;
	line += strlen("\nNSpid:");
	line[strcspn(line, "\n")] = '\0';
	last = strrchr(line, '\t');
	return last != NULL ? strtoull(last + 1, NULL, 10) : 0;
}

static bool is_the_process(const char *pid, const struct region_identity *identity)
{
	char state;

	return namespace_of(pid) == identity->pid_namespace && own_pid_of(pid) == identity->pid &&
	       start_ticks_of(pid, &state) == identity->start_ticks;
}

/* In another namespace: look through those of its processes that we can see. Not finding it proves
 * nothing. */
static enum region_alive look_everywhere(const struct region_identity *identity, uint64_t *pid_here)
{
	enum region_alive answer = REGION_ALIVE_UNKNOWN;
	struct dirent *entry;
	DIR *proc = opendir("/proc");

	if (proc == NULL)
		return answer;
	while (answer == REGION_ALIVE_UNKNOWN && (entry = readdir(proc)) != NULL) {
		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    !is_the_process(entry->d_name, identity))
			continue;
		*pid_here = strtoull(entry->d_name, NULL, 10);
		answer = REGION_ALIVE_YES;
	}
	closedir(proc);
	return answer;
}

static bool is_host_here(const char *host)
{
	char name[256] = "";

	return gethostname(name, sizeof(name) - 1) == 0 && strcmp(name, host) == 0;
}

enum region_alive region_alive(const struct region_identity *identity, uint64_t *pid_here)
{
	char boot_id[40], pid[24], state;
	uint64_t unwanted, start;

	if (pid_here == NULL)
		pid_here = &unwanted;
	region_boot_id(boot_id);
	if (boot_id[0] == '\0' || identity->boot_id[0] == '\0' || identity->pid == 0)
		return REGION_ALIVE_UNKNOWN;
	if (strcmp(boot_id, identity->boot_id) != 0)
		return is_host_here(identity->host) ? REGION_ALIVE_NO : REGION_ALIVE_UNKNOWN;
	if (identity->pid_namespace != 0 && identity->pid_namespace != region_own_pid_namespace())
		return look_everywhere(identity, pid_here);
	text_format(pid, sizeof(pid), "%llu", (unsigned long long)identity->pid);
	start = start_ticks_of(pid, &state);
	if (start == 0 && access("/proc/self/stat", R_OK) == -1)
		return REGION_ALIVE_UNKNOWN;
	if (start == 0 || (identity->start_ticks != 0 && start != identity->start_ticks))
		return REGION_ALIVE_NO;
	if (identity->start_ticks == 0)
		return REGION_ALIVE_UNKNOWN;
	*pid_here = identity->pid;
	return REGION_ALIVE_YES;
}

enum region_alive region_alive_still(const struct region_identity *identity, uint64_t pid_here,
				     char *state)
{
	char pid[24];

	text_format(pid, sizeof(pid), "%llu", (unsigned long long)pid_here);
	if (start_ticks_of(pid, state) == identity->start_ticks && identity->start_ticks != 0)
		return REGION_ALIVE_YES;
	*state = 0;
	return access("/proc/self/stat", R_OK) == 0 ? REGION_ALIVE_NO : REGION_ALIVE_UNKNOWN;
}

char region_process_state(uint64_t pid_here)
{
	char pid[24], state;

	text_format(pid, sizeof(pid), "%llu", (unsigned long long)pid_here);
	start_ticks_of(pid, &state);
	return state;
}
