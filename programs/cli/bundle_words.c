/* What the doctor says, and what the archive says about itself. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/text.h"
#include "programs/cli/bundle_parts.h"
#include "programs/cli/cli_capture.h"

enum { DOCTOR_SECONDS = 300, DOCTOR_MOST = 16 * 1024 * 1024 };

/* ---- the doctor ------------------------------------------------------------------------------- */

/* Where it read them is no news to who reads this. */
static void name_source(struct cli_capture *got)
{
	static const char from[] = "/proc/self/fd/3", to[] = "snapshots/";
	char *at = got->bytes;

	while (at && (at = strstr(at, from)) != NULL) {
		memcpy(at, to, sizeof(to) - 1);
		memmove(at + sizeof(to) - 1, at + sizeof(from) - 1,
			strlen(at + sizeof(from) - 1) + 1);
		got->length -= sizeof(from) - sizeof(to);
	}
}

/* The tool runs itself: the doctor then sees what whoever reads the archive sees, and nothing else. */
static void ask_doctor(struct bundle_archive *archive, const char *name, const char *about,
		       const char *how, uint64_t hang_ns, int snapshots)
{
	char hang[40];
	const char *words[] = {
		"/proc/self/exe", "doctor", how, "/proc/self/fd/3", NULL, NULL, NULL
	};
	struct cli_capture got;

	text_format(hang, sizeof(hang), "%" PRIu64 "ms", hang_ns / 1000000);
	if (hang_ns > 0) {
		words[4] = "--hang";
		words[5] = hang;
	}
	if (cli_capture(&got, words, snapshots, DOCTOR_SECONDS, DOCTOR_MOST) == OK &&
	    (got.exit_code == 0 || got.exit_code == 1) && got.length > 0) {
		name_source(&got);
		bundle_add(archive, name, about, got.bytes, got.length);
	} else {
		bundle_gap(archive, name, "%s", got.why[0] ? got.why : "it said nothing");
	}
	if (got.is_cut)
		bundle_gap(archive, name, "what comes after %d MiB", DOCTOR_MOST / 1024 / 1024);
	free(got.bytes);
}

void bundle_doctor(struct bundle_archive *archive, const struct bundle_request *request,
		   int snapshots)
{
	if (snapshots == -1)
		return;
	ask_doctor(archive, "doctor.txt", "what the doctor says of the snapshots", "--all",
		   request->hang_ns, snapshots);
	ask_doctor(archive, "doctor.json", "the same for programs", "--json", request->hang_ns,
		   snapshots);
}

/* ---- README.txt ------------------------------------------------------------------------------- */

static void write_files(struct sink *sink, const struct bundle_lines *files)
{
	char bytes[UNITS_TEXT];

	sink_text(sink, "What each file is\n\n");
	for (size_t i = 0; i < files->count; i++)
		sink_format(sink, "  %s (%s)\n      %s\n", files->list[i].name,
			    units_bytes(bytes, files->list[i].bytes), files->list[i].text);
}

static void write_gaps(struct sink *sink, const struct bundle_lines *gaps)
{
	sink_text(sink, "\nWhat is not here, and why\n\n");
	for (size_t i = 0; i < gaps->count; i++)
		sink_format(sink, "  %s\n      %s\n", gaps->list[i].name, gaps->list[i].text);
	if (gaps->count == 0)
		sink_text(sink, "  Nothing: all that was looked for is here.\n");
}

void bundle_readme(struct bundle_archive *archive, const struct bundle_request *request,
		   const struct recording *recording)
{
	char host[256] = "?", time[UNITS_TEXT];
	const char *slash = strrchr(request->path, '/');
	const char *name = slash ? slash + 1 : request->path;
	struct sink sink;

	gethostname(host, sizeof(host) - 1);
	sink_init_memory(&sink);
	sink_format(&sink,
		    "A bundle of ringside " RINGSIDE_VERSION ", made on %s at %s.\n"
		    "It is about %zu recorded %s: what each of them was in, its last %zu "
		    "operations,\nwhat the doctor makes of it, and how this machine was.\n\n",
		    host, units_wall_time(time, clock_system_ns(CLOCK_REALTIME)), recording->count,
		    text_which(recording->count, "process", "processes"), request->operations);
	if (strcmp(name, "-") == 0)
		name = "FILE";
	sink_format(&sink,
		    "Read it with\n\n  ringside doctor %s     who is stuck, who is slow\n"
		    "  ringside ps %s         what each process was in\n"
		    "  ringside report %s     where the time of the last operations went\n\n",
		    name, name, name);
	write_files(&sink, &archive->files);
	write_gaps(&sink, &archive->gaps);
	sink_text(&sink,
		  "\nIt holds names of hosts, jobs, communicators and network interfaces, process "
		  "numbers and paths of files.\nOf environments it holds the variables that "
		  "environment.txt lists, none whose name or value looks like a\nsecret. It holds "
		  "no data that was communicated and no command lines.\n");
	bundle_add_sink(archive, "README.txt", "this file", &sink);
}
