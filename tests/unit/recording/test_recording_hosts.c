/* The hosts of a job come from the environment of its processes, and only plain lists of names do. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/text.h"
#include "recording/recording.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"

static char hosts[900];

/* What is found for a process with this one variable in its environment. */
static const char *hosts_with(const char *variable)
{
	struct recording_process process = { .life = RECORDING_ALIVE };
	char *environment[] = { (char *)"A=1", (char *)variable, NULL };
	char *words[] = { (char *)"sleep", (char *)"1000", NULL };
	int ready[2];
	char byte;
	bool is_found;
	pid_t child;

	if (pipe2(ready, O_CLOEXEC) == -1)
		exit(1);
	child = fork();
	if (child == 0) {
		execve("/bin/sleep", words, environment);
		_exit(127);
	}
	/* Closed by execve(): from then on /proc shows its environment. */
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 0)
		exit(1);
	close(ready[0]);
	process.pid_here = child;
	hosts[0] = '\0';
	is_found = recording_hosts(&process, hosts, sizeof(hosts));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return is_found ? hosts : "unknown";
}

static void expect_hosts(const char *sentence, const char *variable, const char *wanted)
{
	const char *got = hosts_with(variable);

	if (strcmp(got, wanted) != 0)
		printf("# got %s\n", got);
	EXPECT_THAT(sentence, strcmp(got, wanted) == 0);
}

static void test_lists(void)
{
	expect_hosts("Slurm's list is passed on", "SLURM_JOB_NODELIST=gpu[001-064,070],login1",
		     "gpu[001-064,070],login1");
	expect_hosts("so is ours", "RINGSIDE_HOSTS=a.example.org:9750,b", "a.example.org:9750,b");
	expect_hosts("LSF's slots become ranges", "LSB_MCPU_HOSTS=gpu08 8 gpu09 8 gpu10 8 other 4",
		     "gpu[08-10],other");
	expect_hosts("so do its repeated names", "LSB_HOSTS=n1 n1 n2 n2 n4", "n[1-2],n4");
	expect_hosts("other variables say nothing", "HOSTNAME=gpu01", "unknown");
	expect_hosts("nor does one with a longer name", "LSB_HOSTS_OF=n1", "unknown");
	expect_hosts("an empty one says nothing", "LSB_HOSTS=", "unknown");
	expect_hosts("numbers alone are slots", "LSB_MCPU_HOSTS=8 9", "unknown");
	expect_hosts("digits count only if there are as many",
		     "LSB_HOSTS=n08 n09 n10 n9 n10x a1b2 a1b3 a2b4 7x 8x x",
		     "n[08-10],n9,n10x,a1b[2-3],a2b4,7x,8x,x");
	expect_hosts(
		"numbers have at most 15 digits",
		"LSB_HOSTS=n100000000000001 n100000000000002 n1000000000000001 n1000000000000002",
		"n[100000000000001-100000000000002],n1000000000000001,n1000000000000002");
}

/* A name has at most 127 bytes. */
static void expect_long(int length, bool is_name)
{
	char name[200], variable[256];

	memset(name, 'n', sizeof(name));
	name[length] = '\0';
	text_format(variable, sizeof(variable), "LSB_HOSTS=%s", name);
	expect_hosts("long names", variable, is_name ? name : "unknown");
}

static void test_hostile(void)
{
	expect_hosts("a quote is refused", "SLURM_JOB_NODELIST=a';reboot #", "unknown");
	expect_hosts("a blank is refused", "RINGSIDE_HOSTS=a --insecure", "unknown");
	expect_hosts("an option is refused", "RINGSIDE_HOSTS=--insecure", "unknown");
	expect_hosts("a file of another kind is refused", "RINGSIDE_HOSTS=@/etc/passwd", "unknown");
	expect_hosts("an open bracket is refused", "RINGSIDE_HOSTS=a[1-2", "unknown");
	expect_hosts("words with other bytes are refused", "LSB_HOSTS=a $(reboot)", "unknown");
	expect_hosts("a word that begins like an option, too", "LSB_HOSTS=a -b", "unknown");
	expect_hosts("and one that is no name", "LSB_HOSTS=a b]", "unknown");
	expect_long(127, true);
	expect_long(128, false);
}

static void test_files(void)
{
	char path[200], variable[300];
	struct inotify_event event;
	FILE *file;
	int events;

	text_format(path, sizeof(path), "%s/nodes", scratch_dir.path);
	text_format(variable, sizeof(variable), "PBS_NODEFILE=%s", path);
	file = fopen(path, "w");
	if (file == NULL)
		exit(1);
	fprintf(file, "node7\nnode7\n# comment\n\n  node8 slots=8\n\tnode12:4\n");
	fclose(file);
	expect_hosts("a file of the same user is read", variable, "node[7-8],node12");
	if (getuid() == 0) {
		if (chown(path, 12345, (gid_t)-1) == -1)
			exit(1);
		expect_hosts("another user's is not", variable, "unknown");
	}
	unlink(path);
	if (mkfifo(path, 0600) == -1)
		exit(1);
	events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (events == -1 || inotify_add_watch(events, path, IN_OPEN) == -1)
		exit(1);
	expect_hosts("nor is a pipe", variable, "unknown");
	EXPECT_THAT("it is not even opened",
		    read(events, &event, sizeof(event)) == -1 && errno == EAGAIN);
	close(events);
	unlink(path);
	if (symlink("/etc/passwd", path) == -1)
		exit(1);
	expect_hosts("nor is what a link leads to", variable, "unknown");
}

/* Schedulers write them as root. */
static void test_spool(void)
{
	static const char path[] = "/var/spool/jobs/nodes";
	FILE *file;

	if (getuid() != 0 || unshare(CLONE_NEWNS) == -1 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1 ||
	    mount("none", "/var/spool", "tmpfs", 0, NULL) == -1) {
		printf("# not root: no file below /var/spool\n");
		return;
	}
	if (mkdir("/var/spool/jobs", 0755) == -1 || (file = fopen(path, "w")) == NULL)
		exit(1);
	fprintf(file, "node1\nnode2\n");
	fclose(file);
	if (chown(path, 12345, (gid_t)-1) == -1 || symlink("jobs", "/var/spool/link") == -1)
		exit(1);
	chmod(path, 0644);
	expect_hosts("below /var/spool anyone's is read", "PBS_NODEFILE=/var/spool/jobs/nodes",
		     "node[1-2]");
	expect_hosts("by its own name", "PBS_NODEFILE=/var/spool/link/nodes", "unknown");
	expect_hosts("without a way back", "PBS_NODEFILE=/var/spool/jobs/../jobs/nodes", "unknown");
	chmod(path, 0640);
	expect_hosts("if everybody may read it", "PBS_NODEFILE=/var/spool/jobs/nodes", "unknown");
}

int main(void)
{
	scratch_make();
	test_lists();
	test_hostile();
	test_files();
	test_spool();
	return tap_done();
}
