/*
 * `ringside bench profilers` on the fake GPU, with a plugin that loses records, crashes or is silent; a training by a
 * script that writes what python3 would; what is refused.
 */
#include <fts.h>

#include "bench/bench_command.h"
#include "bench/profilers.h"
#include "common/attributes.h"
#include "common/op.h"
#include "tests/tap.h"
#include "tests/unit/bench/command_stage.h"

#define QUICK "--ranks 2 " CELLS
#define CELLS "--sizes 1K,64K --calls 6 --warmup 2 --functions allreduce --no-mps "
#define LOSSY "--plugin @/liblossy-1.2.so "

/* Host times differ: results are shown from their JSON. */
static const struct stage_case compared[] = {
	{ "a plugin that loses every fourth record", NULL,
	  "profilers " LOSSY QUICK "--runs 2 --modes blocking,graph --keep @/kept "
	  "-o @/lossy.json >/dev/null" },
	{ "two that crash", "LOSSY_CRASH=5",
	  "profilers " LOSSY "--plugin @/nccl-profiler-b.so --ranks 1 " CELLS
	  "--runs 1 --modes blocking -o @/crash.json >/dev/null" },
	{ "ours, with all its settings", NULL,
	  "profilers --plugin ringside --plugin ringside:flight --plugin ringside:full "
	  "--plugin ringside:cuda-events " QUICK
	  "--runs 1 --modes graph --keep @/ours -o @/ours.json >/dev/null" },
	{ "one that writes nothing", "LOSSY_SILENT=1",
	  "profilers " LOSSY QUICK "--runs 2 --modes back-to-back -o @/silent.json >/dev/null" },
	{ "one of an unknown kind, and another setting", NULL,
	  "profilers --plugin @/liblossy-1.2.so=other --plugin "
	  "@/liblossy-1.2.so=inspector:readme " QUICK
	  "--runs 1 --modes blocking -o @/other.json >/dev/null" },
	{ "logs that are not there in its format", NULL,
	  "profilers --plugin @/liblossy-1.2.so=comma --plugin @/liblossy-1.2.so=ncclsee " QUICK
	  "--runs 1 --modes blocking -o @/foreign.json >/dev/null" },
	{ "no time", NULL,
	  "profilers " LOSSY QUICK "--runs 3 --seconds 0.000001 --modes blocking -o @/none.json "
	  ">/dev/null" },
	{ "no time for a single run", NULL,
	  "profilers " LOSSY QUICK
	  "--runs 1 --seconds 0.000001 --modes blocking,graph >/dev/null" },
	{ "fewer calls than wanted", "FAKE_GPU_CLOCK= FAKE_NCCL_LATENCY_US=20000",
	  "profilers " LOSSY QUICK "--runs 1 --modes blocking --seconds-per-cell 0.001 "
	  "--least-calls 2 -o @/cut.json >/dev/null" },
	{ "a job that fails without a plugin", "FAKE_CUDA_FAIL=cuMemAlloc_v2:1",
	  "profilers " LOSSY CELLS "--ranks 1 --runs 1" },
};

static const struct stage_case trained[] = {
	{ "a training", "PATH=@/bin:/usr/bin:/bin",
	  "profilers " LOSSY "--plugin @/nccl-profiler-b.so=ncclsee --ranks 2 --no-mps "
	  "--train-only --train-epochs 3 --train-steps 4 --train-batch 8 --train-image 32 "
	  "--train-runs 2 --keep @/trained" },
	{ "a training that fails on one rank", "PATH=@/bin:/usr/bin:/bin TRAIN_FAIL=1",
	  "profilers " LOSSY "--ranks 2 --no-mps --train-only --train-runs 1" },
	{ "results that cannot be read", "PATH=@/bin:/usr/bin:/bin TRAIN_DAMAGE=1",
	  "profilers " LOSSY "--ranks 2 --no-mps --train-only --train-runs 1" },
	{ "a damaged table of ncclsee", "PATH=@/bin:/usr/bin:/bin TRAIN_TABLE=damaged",
	  "profilers --plugin @/nccl-profiler-b.so=ncclsee --ranks 1 --no-mps --train-only "
	  "--train-runs 1" },
	{ "no torch", "PATH=@/bin:/usr/bin:/bin TRAIN_TORCH=none",
	  "profilers " LOSSY "--ranks 2 --no-mps --train-only" },
	{ "a torch without NCCL", "PATH=@/bin:/usr/bin:/bin TRAIN_TORCH=other",
	  "profilers " LOSSY "--ranks 2 --no-mps --train-only" },
	{ "no python3", "PATH=@/none", "profilers " LOSSY "--ranks 2 --no-mps --train-only" },
};

static const struct stage_case refused[] = {
	{ "no plugin", NULL, "profilers" },
	{ "a missing plugin", NULL, "profilers --plugin @/nothing.so" },
	{ "a file that is not a plugin", NULL, "profilers --plugin @/bin/python3" },
	{ "a directory", NULL, "profilers --plugin @/bin" },
	{ "an unknown kind", NULL, "profilers --plugin @/liblossy-1.2.so=else" },
	{ "no plugin as a plugin", NULL, "profilers --plugin @/liblossy-1.2.so=none" },
	{ "an unknown setting of ours", NULL, "profilers --plugin ringside:best" },
	{ "an unknown setting", NULL, "profilers --plugin @/liblossy-1.2.so=inspector:fast" },
	{ "a setting of a plugin that has none", NULL,
	  "profilers --plugin @/liblossy-1.2.so=ncclsee:fast" },
	{ "an invalid number", NULL, "profilers " LOSSY "--calls x" },
	{ "no run", NULL, "profilers " LOSSY "--runs 0" },
	{ "too many runs", NULL, "profilers " LOSSY "--runs 65" },
	{ "an image that is too small", NULL, "profilers " LOSSY "--train-image 31" },
	{ "an invalid time", NULL, "profilers " LOSSY "--seconds 0" },
	{ "an invalid time of a job", NULL, "profilers " LOSSY "--job-seconds never" },
	{ "standard output as a file", NULL, "profilers " LOSSY "-o -" },
	{ "a mode without calls", NULL, "profilers " LOSSY "--modes blocking,loop" },
	{ "several types", NULL, "profilers " LOSSY "--types int32,float32" },
	{ "an unknown function", NULL, "profilers " LOSSY "--functions allreduces" },
	{ "plugins together with --from", NULL, "profilers " LOSSY "--from x.json" },
	{ "measuring together with --from", NULL, "profilers --runs 2 --from x.json" },
	{ "an operand", NULL, "profilers ringside" },
	{ "another file", NULL, "profilers --from tests/bench/health.json" },
	{ "no file", NULL, "profilers --from @/nothing.json" },
	{ "a directory that is not empty", NULL, "profilers " LOSSY "--ranks 2 --keep docs" },
	{ "a directory that cannot be created", NULL,
	  "profilers " LOSSY "--ranks 2 --keep @/no/where" },
	{ "a file that cannot be written", NULL,
	  "profilers " LOSSY "--ranks 2 --html @/no/where.html" },
	{ "no CUDA", "RINGSIDE_CUDA=@/none", "profilers " LOSSY "--ranks 2" },
	{ "no GPU", "FAKE_GPUS=0", "profilers " LOSSY "--ranks 2" },
};

/* ---- what was compared ------------------------------------------------------------------------------- */

static void show_counts(struct sink *sink, const struct profilers_complete *row)
{
	char size[PROFILERS_SHORT_TEXT];

	sink_format(sink, "  plugin %d, %s, rank %d, %s of %s%s: %llu issued, %llu recorded, ",
		    row->plugin, bench_mode_name(row->mode), (int)row->rank,
		    op_function_name(row->function),
		    profilers_size_text(size, row->bytes, row->bytes_to),
		    row->is_align ? " to align" : "", (unsigned long long)row->counts.issued,
		    (unsigned long long)row->counts.recorded);
	/* On a busy host not all are timed. */
	sink_format(sink, "%llu missing, %llu too many\n", (unsigned long long)row->counts.missing,
		    (unsigned long long)row->counts.excess);
}

static void show_comparison(struct sink *sink, const struct profilers_comparison *comparison)
{
	char place[PROFILERS_PLACE_TEXT];

	sink_format(sink, "%s; %u runs, %llu calls\n", profilers_place_text(place, comparison),
		    comparison->runs, (unsigned long long)comparison->calls);
	for (size_t i = 0; i < comparison->plugin_count; i++)
		sink_format(sink, "plugin %zu: %s, %s\n", i, comparison->plugins[i].label,
			    profilers_kind_name(comparison->plugins[i].kind));
	for (size_t i = 0; i < comparison->note_count; i++)
		sink_format(sink, "note: %s\n", comparison->notes[i]);
	for (size_t i = 0; i < comparison->not_run_count; i++)
		sink_format(sink, "not run: %s\n", comparison->not_run[i]);
	for (size_t i = 0; i < comparison->job_count; i++) {
		const struct profilers_jobs *jobs = &comparison->jobs[i];

		sink_format(sink, "jobs of %d, %s: %u read, %u silent, %u unreadable, %u failed: ",
			    jobs->plugin, bench_mode_name(jobs->mode), jobs->read, jobs->silent,
			    jobs->unreadable, jobs->failed);
		sink_format(sink, "%s\n", jobs->problem);
	}
	for (size_t i = 0; i < comparison->complete_count; i++)
		show_counts(sink, &comparison->complete[i]);
	for (size_t i = 0; i < comparison->overhead_count; i++)
		if (comparison->overhead[i].bytes != 0)
			sink_format(
				sink,
				"  overhead of %d, %s, %s, %s, %llu bytes: %u runs, %llu calls\n",
				comparison->overhead[i].plugin,
				bench_mode_name(comparison->overhead[i].mode),
				comparison->overhead[i].clock == BENCH_GPU ? "GPU" : "host",
				comparison->overhead[i].function
					? op_function_name(comparison->overhead[i].function)
					: "all functions",
				(unsigned long long)comparison->overhead[i].bytes,
				comparison->overhead[i].runs,
				(unsigned long long)comparison->overhead[i].calls);
}

static void show_file(struct stage *stage, const char *name)
{
	struct profilers_comparison comparison;
	char path[200], *text;

	text_format(path, sizeof(path), "%s/%s", stage->directory, name);
	text = stage_file(path);
	sink_format(&stage->text, "=== %s\n", name);
	if (profilers_read(&comparison, text, strlen(text), NULL) == OK)
		show_comparison(&stage->text, &comparison);
	profilers_comparison_release(&comparison);
	free(text);
}

static int compare_names(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* Names of regular files below. Those of plugins have the names of host and process. */
static void show_tree(struct stage *stage, const char *name)
{
	char path[200], line[300], *paths[] = { path, NULL };
	FTSENT *at;
	FTS *walk;

	text_format(path, sizeof(path), "%s/%s", stage->directory, name);
	sink_format(&stage->text, "=== files in %s\n", name);
	walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, compare_names);
	while (walk != NULL && (at = fts_read(walk)) != NULL) {
		if (at->fts_info != FTS_F)
			continue;
		text_copy(line, sizeof(line), at->fts_path + strlen(path) + 1);
		if (strstr(line, "/output/") != NULL && strncmp(at->fts_name, "table", 5) != 0)
			text_format(strrchr(line, '/') + 1, 32, "*%s", strrchr(at->fts_name, '.'));
		sink_format(&stage->text, "%s\n", line);
	}
	if (walk != NULL)
		fts_close(walk);
}

/* "(12 ms elapsed, about 3 s left)" and the port differ. */
static void forget_durations(struct sink *sink)
{
	for (char *at = strstr(sink->bytes, " elapsed, about "); at != NULL;
	     at = strstr(at, " elapsed, about ")) {
		char *begin = at, *end = strstr(at, " left)");

		while (*begin != '(')
			begin--;
		if (end == NULL)
			return;
		memmove(begin - 1, end + 6, strlen(end + 6) + 1);
		at = begin;
	}
	sink->used = strlen(sink->bytes);
}

/* ---- files that the commands need -------------------------------------------------------------------- */

static void copy_plugin(const struct stage *stage, const char *name)
{
	char from[4200], to[200];
	static char bytes[1 << 20];
	size_t length;
	FILE *file;

	text_format(from, sizeof(from), "%s/tests/lossy_plugin.so", stage->build);
	text_format(to, sizeof(to), "%s/%s", stage->directory, name);
	file = fopen(from, "re");
	if (file == NULL)
		abort();
	length = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	file = fopen(to, "we");
	if (file == NULL || fwrite(bytes, 1, length, file) != length || fclose(file) != 0)
		abort();
}

/* Rank 1 takes a little longer; with a plugin all do. Its arguments are in args-RANK. */
static const char python[] =
	"#!/bin/sh\n"
	"case $1,$TRAIN_TORCH in\n"
	"-c,none) exit 1 ;;\n"
	"-c,other) echo no NCCL; exit ;;\n"
	"-c,*) echo fine; exit ;;\n"
	"esac\n"
	"[ -s \"$1\" ] && shift && echo \"$@\" >../args-$RANK\n"
	"[ \"$TRAIN_FAIL\" != \"$RANK\" ] || { echo; echo no memory; exit 1; }\n"
	"more=$RANK\n"
	"case $NCCL_PROFILER_PLUGIN in *lossy*) more=$((RANK + 2)) ;; *-b.so) more=4 ;; esac\n"
	"echo '{\"rank\":'$RANK',\"ranks\":'$WORLD_SIZE',\"gpu\":\"Fake "
	"GPU\",\"host\":\"node-1\",'\\\n"
	"'\"parameters\":7978856,\"steps\":4,\"torch\":\"2.9\",\"nccl\":\"2.28.9\",\"epochs\":['"
	"\\\n"
	"'{\"begin_ns\":180000000000000000'$more',\"ns\":9000000000},'\\\n"
	"'{\"begin_ns\":180000001000000000'$more',\"ns\":500'$more'000000},'\\\n"
	"'{\"begin_ns\":180000002000000000'$more',\"ns\":501'$more'000000}]}' "
	">../train-$RANK.json\n"
	"[ \"$TRAIN_DAMAGE\" != \"$RANK\" ] || echo '{' >../train-$RANK.json\n"
	"case $NCCL_PROFILER_PLUGIN in\n"
	"*lossy*)\n"
	"	for sn in 0 1 2; do\n"
	"	echo "
	"'{\"header\":{\"id\":\"0x5eed00c0ffee01\",\"comm_name\":\"world\",\"rank\":'$RANK','\\\n"
	"	'\"n_ranks\":2,\"nnodes\":1},\"metadata\":{\"inspector_output_format_version\":"
	"\"v4.0\",'\\\n"
	"	'\"git_rev\":\"\",\"rec_mechanism\":\"nccl_profiler_interface\",\"dump_timestamp_"
	"us\":'\\\n"
	"	'180000001000000'$sn',\"hostname\":\"node-1\",\"pid\":'$$'},\"coll_perf\":{"
	"\"coll\":'\\\n"
	"	'\"AllReduce\",\"coll_sn\":'$sn',\"coll_msg_size_bytes\":1048576,\"coll_exec_time_"
	"us\":'\\\n"
	"	'100,\"coll_timing_source\":\"kernel_gpu\",\"coll_algobw_gbs\":10.4,'\\\n"
	"	'\"coll_busbw_gbs\":18.3}}'\n"
	"	done >node-1-pid$$.log ;;\n"
	"*-b.so)\n"
	"	{ echo "
	"CollectiveType,BucketLabel,BucketMin,BucketMax,Calls,BytesTransferred,TotalTime_us\n"
	"	echo AllReduce,1024-8192,1024,8192,${TRAIN_TABLE:-205},419840,8123.25\n"
	"	echo Group,N/A,0,0,12,0,1.5; } >table-$RANK.csv ;;\n"
	"esac\n";

static void make_python(const struct stage *stage)
{
	char path[200];
	FILE *file;

	text_format(path, sizeof(path), "%s/bin", stage->directory);
	if (mkdir(path, 0755) == -1)
		abort();
	text_format(path, sizeof(path), "%s/bin/python3", stage->directory);
	file = fopen(path, "we");
	if (file == NULL || fputs(python, file) == EOF || fclose(file) != 0 ||
	    chmod(path, 0755) == -1)
		abort();
}

int main(void)
{
	struct stage stage;

	stage_open(&stage);
	setenv("TMPDIR", stage.directory, 1);
	copy_plugin(&stage, "liblossy-1.2.so");
	copy_plugin(&stage, "nccl-profiler-b.so");
	make_python(&stage);
	stage_run(&stage, bench_profilers, compared, ARRAY_LENGTH(compared));
	forget_durations(&stage.text);
	show_tree(&stage, "kept");
	show_file(&stage, "lossy.json");
	show_tree(&stage, "ours");
	show_file(&stage, "ours.json");
	show_file(&stage, "crash.json");
	show_file(&stage, "silent.json");
	show_file(&stage, "other.json");
	show_file(&stage, "foreign.json");
	show_file(&stage, "none.json");
	show_file(&stage, "cut.json");
	EXPECT_THAT("comparisons as in command_profilers.txt",
		    stage_is_expected(&stage, "tests/unit/bench/expected/command_profilers.txt"));
	stage_run(&stage, bench_profilers, trained, ARRAY_LENGTH(trained));
	forget_durations(&stage.text);
	show_tree(&stage, "trained");
	EXPECT_THAT("trainings as in command_train.txt",
		    stage_is_expected(&stage, "tests/unit/bench/expected/command_train.txt"));
	stage_run(&stage, bench_profilers, refused, ARRAY_LENGTH(refused));
	EXPECT_THAT("complaints as in command_profilers_refused.txt",
		    stage_is_expected(&stage,
				      "tests/unit/bench/expected/command_profilers_refused.txt"));
	sink_release(&stage.text);
	return tap_done();
}
