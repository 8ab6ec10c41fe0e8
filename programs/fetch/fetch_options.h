/* The command line of ringside-fetch, and the file with what it shows to servers. */
#ifndef FETCH_OPTIONS_H
#define FETCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fetch_options {
	unsigned int parallel; /* requests under way at a time */
	uint64_t timeout_ms;   /* for one request, from its start to its last byte */
	uint64_t connect_ms;   /* of that, until it is connected */
	uint64_t limit_bytes;  /* of one answer, unpacked */
	uint64_t total_bytes;  /* of all answers */
	const char *ca_file;   /* NULL: the system's */
	bool is_insecure;      /* any certificate will do */
	char user[512];	       /* "name:password"; "" none */
	char bearer[4096];     /* "" none */
};

/* -1: go on; else the exit code, after help or an error was told. */
int fetch_options_parse(struct fetch_options *options, int argc, char **argv);

/* The first line of such a file: "basic NAME:PASSWORD" or "bearer TOKEN". False: it is neither. */
bool fetch_options_secret(struct fetch_options *options, const char *text);

#endif
