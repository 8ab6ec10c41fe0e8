/*
 * A directory for this test below $TMPDIR or /tmp, removed when the process that created it exits.
 */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
	char path[48];
	pid_t owner;
} scratch_dir;

static inline int scratch_remove_one(const char *path, const struct stat *st, int type,
				     struct FTW *place)
{
	(void)st, (void)type, (void)place;
	return remove(path);
}

/* Not in children that a test forked. */
static inline void scratch_remove(void)
{
	if (getpid() == scratch_dir.owner)
		nftw(scratch_dir.path, scratch_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static inline const char *scratch_make(void)
{
	const char *parent = getenv("TMPDIR");

	if (parent == NULL || strlen(parent) > 24)
		parent = "/tmp";
	snprintf(scratch_dir.path, sizeof(scratch_dir.path), "%s/ringside-test-XXXXXX", parent);
	if (mkdtemp(scratch_dir.path) == NULL)
		exit(1);
	scratch_dir.owner = getpid();
	/* Registered before the recorder's handler, so it runs last. */
	atexit(scratch_remove);
	return scratch_dir.path;
}

#endif
