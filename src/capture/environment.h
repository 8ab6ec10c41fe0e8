/*
 * Which variables the job was started with, as far as they decide how it communicates: for the doctor. Secrets stay
 * out: only the names of a list are looked at, none whose name speaks of secrets, and of a value that looks like one
 * nothing is kept (base/secret.h).
 * docs/SETTINGS.md says which. In init only: it reads a file and calls getenv, as NCCL does there.
 */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

enum { ENVIRONMENT_BYTES = 6144, ENVIRONMENT_VALUE_BYTES = 200 };

struct environment {
	char text[ENVIRONMENT_BYTES]; /* lines "env.NAME=VALUE", the most telling first */
	size_t bytes;
	unsigned int left_out; /* variables that were meant to be here and found no room */
};

void environment_read(struct environment *environment);

/* Is a variable of this name recorded? */
bool environment_has(const char *name);

#endif
