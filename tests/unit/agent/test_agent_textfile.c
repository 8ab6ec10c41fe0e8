/*
 * Textfiles while others use their directory: readers see whole files only, and whoever can write
 * there and exchanges files for links cannot make the agent write, remove or change anything
 * elsewhere. See docs/THREATS.md.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "common/attributes.h"
#include "common/order.h"
#include "common/text.h"
#include "tests/support/live_scene.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"

enum { ROUNDS = 400, FILE_MOST = 1 << 20 };

static struct {
	struct live_scene scene;
	char dir[128], name[AGENT_TEXTFILE_NAME], path[300], beside[310], victim[300];
	char whole[FILE_MOST]; /* what the file should hold */
	ssize_t whole_bytes;
	uint32_t is_over;
	uint32_t reads, torn;
	uint32_t swaps;
} stage;

/* 0 is as good as a file that cannot be opened. */
static ssize_t read_file(const char *path, char *to)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t got, used = 0;

	while (fd != -1 && (got = read(fd, to + used, FILE_MOST - (size_t)used)) > 0)
		used += got;
	if (fd != -1)
		close(fd);
	return used;
}

static void set_stage(void)
{
	struct recording_process *process = scene_process(&stage.scene, "textfile", 0, 2);

	text_format(stage.dir, sizeof(stage.dir), "%s/text", scratch_make());
	text_format(stage.victim, sizeof(stage.victim), "%s/victim", scratch_dir.path);
	if (mkdir(stage.dir, 0700) == -1)
		abort();
	scene_comm(process, 1, "world", 0, 2, 1);
	scene_comm(process, 2, "data", 0, 2, 1);
	scene_join(&stage.scene);
	agent_textfile_name(process, stage.name);
	text_format(stage.path, sizeof(stage.path), "%s/%s", stage.dir, stage.name);
	text_format(stage.beside, sizeof(stage.beside), "%s.new", stage.path);
}

static void write_victim(void)
{
	int fd = open(stage.victim, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd == -1 || write(fd, "untouched", 9) != 9 || close(fd) == -1)
		abort();
}

static bool victim_is_untouched(void)
{
	struct stat st;
	char bytes[16];
	int fd = open(stage.victim, O_RDONLY | O_CLOEXEC);
	bool is_so = fd != -1 && fstat(fd, &st) == 0 && (st.st_mode & 07777) == 0600 &&
		     read(fd, bytes, sizeof(bytes)) == 9 && memcmp(bytes, "untouched", 9) == 0;

	if (fd != -1)
		close(fd);
	return is_so;
}

/* ---- readers --------------------------------------------------------------------------------- */

static void *read_often(void *unused)
{
	static char bytes[FILE_MOST];

	(void)unused;
	while (!load_acquire(&stage.is_over)) {
		ssize_t got = read_file(stage.path, bytes);

		add_relaxed(&stage.reads, 1);
		if (got != stage.whole_bytes || memcmp(bytes, stage.whole, (size_t)got) != 0)
			add_relaxed(&stage.torn, 1);
	}
	return NULL;
}

static void readers_see_whole_files(struct agent_textfile *to)
{
	pthread_t reader;

	agent_textfile_write(to, &stage.scene.live, 0);
	stage.whole_bytes = read_file(stage.path, stage.whole);
	EXPECT_THAT("a file is written", stage.whole_bytes > 1000);
	if (pthread_create(&reader, NULL, read_often, NULL) != 0)
		abort();
	for (int i = 0; i < ROUNDS || load_relaxed(&stage.reads) < ROUNDS; i++)
		agent_textfile_write(to, &stage.scene.live, 0);
	store_release(&stage.is_over, 1);
	pthread_join(reader, NULL);
	printf("# %u reads\n", stage.reads);
	EXPECT_EQUAL(stage.torn, 0);
}

/* ---- an attacker ----------------------------------------------------------------------------- */

/* All of these can fail: the agent is at work in the same directory. */
static bool swap_one(unsigned int which)
{
	const char *at = which & 1 ? stage.path : stage.beside;
	char aside[320];

	text_format(aside, sizeof(aside), "%s/aside", stage.dir);
	if (unlink(at) == -1 && errno == EISDIR)
		rmdir(at);
	switch (which / 2 % 5) {
	case 0:
		return symlink(stage.victim, at) == 0;
	case 1:
		return link(stage.victim, at) == 0;
	case 2:
		return mkfifo(at, 0666) == 0;
	case 3:
		return mkdir(at, 0700) == 0;
	default:
		/* A link where the agent is about to create, by a rename. */
		unlink(aside);
		return symlink(stage.victim, aside) == 0 && rename(aside, at) == 0;
	}
}

static void *swap_often(void *unused)
{
	unsigned int which = 0;

	(void)unused;
	while (!load_acquire(&stage.is_over))
		if (swap_one(which++))
			add_relaxed(&stage.swaps, 1);
	return NULL;
}

static void an_attacker_reaches_nothing_else(struct agent_textfile *to)
{
	pthread_t attacker;
	char away[200];

	write_victim();
	/* Failing and working again is logged each time. */
	if (freopen("/dev/null", "w", stderr) == NULL)
		abort();
	store_release(&stage.is_over, 0);
	if (pthread_create(&attacker, NULL, swap_often, NULL) != 0)
		abort();
	for (int i = 0; i < ROUNDS || load_relaxed(&stage.swaps) < ROUNDS; i++)
		agent_textfile_write(to, &stage.scene.live, 0);
	store_release(&stage.is_over, 1);
	pthread_join(attacker, NULL);
	printf("# %u swaps\n", stage.swaps);
	EXPECT_THAT("links, pipes and directories in place of its files lead nowhere",
		    victim_is_untouched());

	/* The directory itself is exchanged for a link. */
	text_format(away, sizeof(away), "%s/away", scratch_dir.path);
	rmdir(stage.path);
	rmdir(stage.beside);
	if (mkdir(away, 0700) == -1)
		abort();
	text_format(away, sizeof(away), "%s/before", scratch_dir.path);
	if (rename(stage.dir, away) == -1)
		abort();
	text_format(away, sizeof(away), "%s/away", scratch_dir.path);
	if (symlink(away, stage.dir) == -1)
		abort();
	agent_textfile_write(to, &stage.scene.live, 0);
	EXPECT_THAT("a directory exchanged for a link gets no file", rmdir(away) == 0);
	EXPECT_THAT("which are still written where they were",
		    rename(stage.dir, away) == 0 && !to->is_failing);
}

int main(void)
{
	struct agent_textfile to;

	set_stage();
	EXPECT_EQUAL(agent_textfile_open(&to, stage.dir, 1), 0);
	readers_see_whole_files(&to);
	an_attacker_reaches_nothing_else(&to);
	agent_textfile_close(&to);
	live_scene_release(&stage.scene);
	return tap_done();
}
