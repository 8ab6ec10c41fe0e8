/*
 * Whole recordings: simulated jobs that finish, hang, are killed or started again, their snapshots, and files that are cut,
 * damaged, doubled or none of ours. Every field of what is loaded is compared.
 */
#include "tests/tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "sim/sim_engine.h"
#include "sim/sim_job.h"
#include "tests/support/expected_file.h"
#include "tests/support/scratch.h"
#include "tests/unit/recording/recording_show.h"

struct whole_job {
	enum sim_workload workload;
	const char *fault;
	int iterations, attempt;
	bool is_full;
};

static const char *folder_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", scratch_dir.path, name);
	return path;
}

/* Writes the files of a job with two ranks on two nodes. */
static void simulate(const char *name, const struct whole_job *whole)
{
	struct sim_options options;
	struct sim_result result;
	struct sim_job job;
	char why[256], failed[512];

	sim_options_init(&options);
	options.nodes = 2;
	options.gpus = 1;
	options.workload = whole->workload;
	options.iterations = (uint64_t)whole->iterations;
	options.seed = 5;
	options.times = SIM_TIMES_KERNEL;
	options.is_full = whole->is_full;
	options.channels = 2;
	options.at_ns = 300000000;
	options.sizes[options.size_count++] = 1 << 20;
	if (whole->attempt > 1) {
		options.attempt = whole->attempt;
		options.begin_ns = UINT64_C(60000000000);
	}
	if (whole->fault != NULL && sim_fault_parse(&options.faults[options.fault_count++],
						    whole->fault, why, sizeof(why)) != OK)
		abort();
	if (sim_options_finish(&options, why, sizeof(why)) != OK ||
	    sim_job_init(&job, &options) != OK || sim_result_init(&result, &job) != OK ||
	    sim_offline_run(&job, folder_of(name), &result, failed, sizeof(failed)) != OK)
		abort();
	sim_result_release(&result);
	sim_job_release(&job);
}

/* The file of a rank, or the first one. */
static const char *file_of(const char *folder, int rank)
{
	static char path[512];
	char start[16];
	DIR *dir = opendir(folder_of(folder));
	struct dirent *entry;

	snprintf(start, sizeof(start), "r%d-", rank);
	while (dir != NULL && (entry = readdir(dir)) != NULL)
		if (strncmp(entry->d_name, start, strlen(start)) == 0)
			snprintf(path, sizeof(path), "%s/%s", folder_of(folder), entry->d_name);
	if (dir != NULL)
		closedir(dir);
	return path;
}

static size_t read_whole(const char *path, unsigned char *bytes, size_t room)
{
	FILE *file = fopen(path, "re");
	size_t length;

	if (file == NULL)
		abort();
	length = fread(bytes, 1, room, file);
	fclose(file);
	return length;
}

static void write_whole(const char *path, const void *bytes, size_t length)
{
	FILE *file = fopen(path, "we");

	if (file == NULL || fwrite(bytes, 1, length, file) != length || fclose(file) != 0)
		abort();
}

static void finish_and_show(struct sink *sink, const char *heading, struct recording *recording)
{
	if (recording_finish(recording) != OK || recording_find_flights(recording) != OK)
		abort();
	sink_format(sink, "=== %s\n", heading);
	show_recording(sink, recording);
}

static void show_folder(struct sink *sink, const char *heading, const char *folder)
{
	struct recording recording;

	recording_init(&recording);
	if (recording_add(&recording, folder_of(folder), 0) != OK)
		abort();
	finish_and_show(sink, heading, &recording);
	recording_release(&recording);
}

/* The snapshots of all processes of a folder, alone or with their files. */
static void show_snapshots(struct sink *sink, const char *heading, const char *folder,
			   size_t operations, bool is_with_files)
{
	struct recording recording, again;

	recording_init(&recording);
	recording_init(&again);
	if (recording_add(&recording, folder_of(folder), 0) != OK ||
	    recording_finish(&recording) != OK || recording_find_flights(&recording) != OK)
		abort();
	for (size_t i = 0; i < recording.count; i++) {
		unsigned char *bytes;
		size_t length;
		char name[32];

		snprintf(name, sizeof(name), "snapshot %zu", i);
		if (recording_snapshot(recording.processes[i], operations, 0, &bytes, &length) !=
			    OK ||
		    recording_add_memory(&again, name, bytes, length, 0) != OK)
			abort();
		free(bytes);
	}
	if (is_with_files && recording_add(&again, folder_of(folder), 0) != OK)
		abort();
	finish_and_show(sink, heading, &again);
	recording_release(&recording);
	recording_release(&again);
}

static void expect_shown(struct sink *sink, const char *sentence, const char *path)
{
	EXPECT_THAT(sentence, sink->status == OK && expected_file(sink_string(sink), path));
	sink_release(sink);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static void jobs_are_loaded(void)
{
	static const struct {
		const char *folder;
		struct whole_job job;
	} list[] = {
		{ "finished", { .workload = SIM_LOOP, .iterations = 2 } },
		{ "full", { .workload = SIM_LOOP, .iterations = 1, .is_full = true } },
		{ "stuck",
		  { .workload = SIM_FSDP, .iterations = 2, .fault = "stuck-send:rank=0" } },
		{ "missing",
		  { .workload = SIM_DDP, .iterations = 3, .fault = "never-arrives:rank=1" } },
		{ "killed", { .workload = SIM_LOOP, .iterations = 40, .fault = "kill:rank=1" } },
	};
	struct whole_job again = { .workload = SIM_LOOP, .iterations = 1, .attempt = 2 };
	struct sink sink;

	sink_init_memory(&sink);
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		simulate(list[i].folder, &list[i].job);
		show_folder(&sink, list[i].folder, list[i].folder);
	}
	simulate("finished", &again);
	show_folder(&sink, "started again", "finished");
	expect_shown(&sink, "jobs are loaded with all that they have",
		     "tests/unit/recording/expected/whole_jobs.txt");
}

static void snapshots_are_loaded(void)
{
	struct sink sink;

	sink_init_memory(&sink);
	show_snapshots(&sink, "snapshots of a stuck job", "stuck", 3, false);
	show_snapshots(&sink, "snapshots and files of a stuck job", "stuck", 2, true);
	show_snapshots(&sink, "snapshots of a finished job", "full", 1000, false);
	show_snapshots(&sink, "snapshots without operations", "missing", 0, false);
	show_snapshots(&sink, "snapshots and files of a killed rank", "killed", 5, true);
	expect_shown(&sink, "snapshots are loaded with all that they have",
		     "tests/unit/recording/expected/whole_snapshots.txt");
}

/* ---- files that are not as they should be ---------------------------------------------------- */

static void wrong_files_are_loaded(void)
{
	static unsigned char bytes[1 << 18];
	size_t length = read_whole(file_of("full", 0), bytes, sizeof(bytes));
	const char *folder = "wrong";
	char path[300];
	struct sink sink;

	sink_init_memory(&sink);
	if (mkdir(folder_of(folder), 0700) != 0)
		abort();
	snprintf(path, sizeof(path), "%s/one", folder_of(folder));
	for (size_t part = 1; part <= 7; part++) {
		char heading[64];

		write_whole(path, bytes, length * part / 8);
		snprintf(heading, sizeof(heading), "cut after %zu of 8 parts", part);
		show_folder(&sink, heading, folder);
	}
	for (size_t part = 0; part < 8; part++) {
		char heading[64];

		bytes[length * part / 8] ^= 0x55;
		write_whole(path, bytes, length);
		bytes[length * part / 8] ^= 0x55;
		snprintf(heading, sizeof(heading), "damaged in part %zu of 8", part);
		show_folder(&sink, heading, folder);
	}
	write_whole(path, bytes, length);
	snprintf(path, sizeof(path), "%s/two", folder_of(folder));
	write_whole(path, bytes, length);
	show_folder(&sink, "the same file twice", folder);
	write_whole(path, bytes, length / 2);
	show_folder(&sink, "a file and half of it", folder);
	write_whole(path, "", 0);
	show_folder(&sink, "an empty file beside it", folder);
	write_whole(path, "no recording\n", 13);
	snprintf(path, sizeof(path), "%s/three", folder_of(folder));
	if (symlink(path, path) != 0 || symlink("nowhere", folder_of("wrong/four")) != 0 ||
	    mkdir(folder_of("wrong/five"), 0700) != 0)
		abort();
	show_folder(&sink, "a text, links to nothing and an empty folder beside it", folder);
	show_folder(&sink, "an empty folder", "wrong/five");
	show_folder(&sink, "nothing", "wrong/six");
	expect_shown(&sink, "what can be read of wrong files is loaded",
		     "tests/unit/recording/expected/whole_wrong.txt");
}

int main(void)
{
	scratch_make();
	jobs_are_loaded();
	snapshots_are_loaded();
	wrong_files_are_loaded();
	return tap_done();
}
