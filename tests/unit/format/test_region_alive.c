#include "format/region_read.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/file.h"
#include "common/text.h"
#include "format/region_create.h"
#include "recording/recording.h"
#include "tests/tap.h"

static uint64_t start_ticks(pid_t pid)
{
	unsigned long long ticks = 0;
	char path[64], text[1024] = "";
	FILE *file;
	char *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	if (file == NULL || fgets(text, sizeof(text), file) == NULL)
		abort();
	fclose(file);
	at = strrchr(text, ')');
	sscanf(at + 2,
	       "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
	       "%*d %llu",
	       &ticks);
	return ticks;
}

static void test_child(const char *boot_id)
{
	struct region_identity child = { "", boot_id, 0, file_proc_namespace("self"), 0 };
	uint64_t pid_here = 0;
	pid_t pid = fork();
	siginfo_t info;
	int status;

	if (pid == 0) {
		pause();
		_exit(0);
	}
	child.pid = (uint64_t)pid;
	child.start_ticks = start_ticks(pid);
	EXPECT_EQUAL(region_alive(&child, &pid_here), REGION_ALIVE_YES);
	EXPECT_EQUAL(pid_here, pid);
	kill(pid, SIGKILL);
	/* Dead but not waited for: a zombie. */
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	EXPECT_THAT("a zombie is dead", region_alive(&child, NULL) == REGION_ALIVE_NO);
	waitpid(pid, &status, 0);
	EXPECT_EQUAL(region_alive(&child, NULL), REGION_ALIVE_NO);
}

/*
 * Its pid means nothing here, and we cannot see its namespace: as for an agent in its own
 * container.
 */
static void make_region_elsewhere(const char *dir, const char *boot_id, int ready)
{
	struct region_request request = { .dir = dir,
					  .pid = 4711,
					  .start_ticks = 42,
					  .pid_namespace = 1,
					  .ring_bytes = 64 << 10,
					  .group = (gid_t)-1 };
	struct region_writer writer;

	if (region_create(&writer, &request) != OK || writer.kind != REGION_KIND_SHM)
		_exit(3);
	text_copy(writer.header->boot_id, sizeof(writer.header->boot_id), boot_id);
	region_publish(&writer);
	if (write(ready, "", 1) != 1)
		_exit(3);
	pause();
}

static enum recording_life life_of_the_one_in(const char *dir)
{
	enum recording_life life = RECORDING_ENDED;
	struct recording recording;

	recording_init(&recording);
	if (recording_add(&recording, dir, 0) != OK || recording_finish(&recording) != OK)
		abort();
	if (recording.count == 1)
		life = recording.processes[0]->life;
	recording_release(&recording);
	return life;
}

static void readers_see_a_death_in_another_namespace(const char *boot_id)
{
	char dir[] = "/tmp/ringside-test-XXXXXX", command[64], byte;
	int ready[2];
	pid_t pid;

	if (mkdtemp(dir) == NULL || pipe(ready) != 0)
		abort();
	pid = fork();
	if (pid == 0)
		make_region_elsewhere(dir, boot_id, ready[1]);
	close(ready[1]);
	EXPECT(read(ready[0], &byte, 1) == 1);
	EXPECT_EQUAL(life_of_the_one_in(dir), RECORDING_UNKNOWN);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	EXPECT_EQUAL(life_of_the_one_in(dir), RECORDING_KILLED);
	close(ready[0]);
	text_format(command, sizeof(command), "rm -rf %s", dir);
	EXPECT(system(command) == 0);
}

int main(void)
{
	char boot_id[40], host[256] = "";
	uint64_t pid_here = 0;
	struct region_identity self = { "", boot_id, (uint64_t)getpid(),
					file_proc_namespace("self"), start_ticks(getpid()) };

	region_boot_id(boot_id);
	gethostname(host, sizeof(host) - 1);
	EXPECT(strlen(boot_id) == 36);
	EXPECT(self.pid_namespace != 0);
	EXPECT_EQUAL(region_alive(&self, NULL), REGION_ALIVE_YES);
	self.start_ticks++;
	EXPECT_THAT("a reused pid is not the same process",
		    region_alive(&self, NULL) == REGION_ALIVE_NO);
	self.start_ticks = 0;
	EXPECT_EQUAL(region_alive(&self, NULL), REGION_ALIVE_UNKNOWN);
	self.start_ticks = start_ticks(getpid());
	self.pid_namespace++;
	EXPECT_THAT("in another namespace it is unknown",
		    region_alive(&self, NULL) == REGION_ALIVE_UNKNOWN);
	self.pid_namespace--;
	self.boot_id = "00000000-0000-0000-0000-000000000000";
	EXPECT_THAT("on another host it is unknown",
		    region_alive(&self, NULL) == REGION_ALIVE_UNKNOWN);
	self.host = host;
	EXPECT_THAT("a container may have a boot id of its own: the process is the same",
		    region_alive(&self, &pid_here) == REGION_ALIVE_YES &&
			    pid_here == (uint64_t)getpid());
	self.start_ticks++;
	EXPECT_THAT("after a reboot it is dead", region_alive(&self, NULL) == REGION_ALIVE_NO);
	self.pid_namespace = 1;
	EXPECT_THAT("unless it may be where we cannot see it",
		    region_alive(&self, NULL) == REGION_ALIVE_UNKNOWN);
	self.pid_namespace = file_proc_namespace("self");
	self.start_ticks = 0;
	EXPECT_THAT("nor is it known without its start",
		    region_alive(&self, NULL) == REGION_ALIVE_NO);
	self.start_ticks = start_ticks(getpid());
	self.pid_namespace = 0;
	EXPECT(region_alive(&self, NULL) == REGION_ALIVE_NO);
	self.pid_namespace = file_proc_namespace("self");
	self.boot_id = "";
	EXPECT_EQUAL(region_alive(&self, NULL), REGION_ALIVE_UNKNOWN);
	test_child(boot_id);
	readers_see_a_death_in_another_namespace(boot_id);
	return tap_done();
}
