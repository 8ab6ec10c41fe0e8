/*
 * A training job: programs/bench/densenet.py, one python3 for each rank, started as every other job is. What it
 * issued is counted in front of NCCL by libringside-count.so; what the plugin saw of it is in its output.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmds/cli.h"
#include "cmds/cli_output.h"
#include "cmds/cli_program.h"
#include "common/op_layout.h"
#include "common/text.h"
#include "programs/bench/count_read.h"
#include "programs/bench/densenet_script.h"
#include "programs/bench/train_read.h"
#include "programs/cli/profilers_session.h"

#define COUNT_LIBRARY "libringside-count.so"
enum { TORCH_SECONDS = 180, TORCH_BYTES = 4096, RESULT_BYTES = 1 << 20 };

/* ---- is everything there? --------------------------------------------------------------------- */

static bool out(struct profilers_session *session, const char *why)
{
	profilers_not_run(session->profilers, "training: %s", why);
	cli_error("training is left out: %s", why);
	return false;
}

bool session_train_is_possible(struct profilers_session *session)
{
	static const char *const words[] = {
		"python3", "-c",
		"import torch, torch.distributed as d; "
		"print('no NCCL' if not d.is_nccl_available() else "
		"'no GPU' if not torch.cuda.is_available() else 'fine')",
		NULL
	};
	struct cli_capture capture = { .bytes = NULL };
	enum status status = cli_capture(&capture, words, -1, TORCH_SECONDS, TORCH_BYTES);
	char why[PROFILERS_TEXT_BYTES] = "";

	if (status != OK)
		text_format(why, sizeof(why), "python3 cannot be run: %s", capture.why);
	else if (capture.exit_code != 0)
		text_format(why, sizeof(why), "python3 cannot load torch");
	else if (strncmp(capture.bytes, "fine", 4) != 0)
		text_format(why, sizeof(why), "this torch has %.*s",
			    (int)strcspn(capture.bytes, "\n"), capture.bytes);
	free(capture.bytes);
	return why[0] == '\0' ? true : out(session, why);
}

/* ---- running it -------------------------------------------------------------------------------- */

struct training {
	const struct profilers_request *request;
	const struct session_job *job;
	char script[WORK_PATH_BYTES + 300];
	char port[16];
};

/* One that was free a moment ago. */
static int free_port(char *text, size_t size)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int failed = fd == -1 || bind(fd, (struct sockaddr *)&address, sizeof(address)) == -1 ||
		     getsockname(fd, (struct sockaddr *)&address, &length) == -1;

	if (failed)
		cli_error("cannot find a free port: %s", strerror(errno));
	else
		text_format(text, size, "%u", ntohs(address.sin_port));
	if (fd != -1)
		close(fd);
	return failed ? CLI_EXIT_TROUBLE : 0;
}

static int script_write(const char *path)
{
	struct cli_output output;
	size_t length;
	const char *script = densenet_script(&length);

	if (cli_output_open(&output, path) != 0)
		return CLI_EXIT_TROUBLE;
	sink_write(&output.sink, script, length);
	return cli_output_commit(&output, CLI_EXIT_DONE);
}

/* On every rank, in a process of its own: becomes python3. RANK and the like are set as torchrun does. */
static int body(const struct bench_place *place, void *context)
{
	const struct training *training = context;
	const struct profilers_request *request = training->request;
	char epochs[16], steps[16], batch[16], image[16];
	const char *words[] = {
		"python3", training->script, "--out", "..",	"--epochs", epochs, "--steps",
		steps,	   "--batch",	     batch,   "--size", image,	    NULL
	};

	text_format(epochs, sizeof(epochs), "%u", request->train_epochs);
	text_format(steps, sizeof(steps), "%u", request->train_steps);
	text_format(batch, sizeof(batch), "%u", request->train_batch);
	text_format(image, sizeof(image), "%u", request->train_image);
	setenv("MASTER_ADDR", "127.0.0.1", 1);
	setenv("MASTER_PORT", training->port, 1);
	session_unblock_signals();
	if (chdir(training->job->place.output) == 0)
		execvp(words[0], (char *const *)words);
	bench_tell(place, "cannot run python3");
	return CLI_EXIT_TROUBLE;
}

/* Counted where our library is; a job without it is a job all the same. */
static void add_counter(struct profilers_session *session, struct session_job *job, char *counts,
			size_t size)
{
	char plugin[VARIANT_PATH_BYTES], looked[VARIANT_PATH_BYTES], value[2 * VARIANT_PATH_BYTES];
	const char *before = getenv("LD_PRELOAD");
	char *slash;

	counts[0] = '\0';
	if (!cli_plugin_find(plugin, sizeof(plugin), looked, sizeof(looked)) ||
	    (slash = strrchr(plugin, '/')) == NULL)
		return;
	text_format(slash + 1, sizeof(plugin) - (size_t)(slash + 1 - plugin), "%s", COUNT_LIBRARY);
	if (access(plugin, R_OK) == -1) {
		profilers_note(session->profilers,
			       "%s is not beside the plugin: calls of the "
			       "training were not counted",
			       COUNT_LIBRARY);
		return;
	}
	if (profilers_work_make(job->directory, "counts", counts, size) != 0)
		return;
	text_format(value, sizeof(value), "%s%s%s", plugin, before && before[0] ? ":" : "",
		    before ? before : "");
	profilers_variables_add(&job->variables, "LD_PRELOAD", value);
	profilers_variables_add(&job->variables, "RINGSIDE_COUNT_DIR", counts);
}

/* ---- what came of it --------------------------------------------------------------------------- */

/* "2.28.9" as 22809; 0: it is none. */
static int32_t version_number(const char *text)
{
	unsigned int major, minor, patch;

	if (sscanf(text, "%3u.%3u.%3u", &major, &minor, &patch) != 3 || minor > 99 || patch > 99)
		return 0;
	return (int32_t)(major * 10000 + minor * 100 + patch);
}

/* For a comparison of trainings alone: where they ran. */
static void tell_place(struct profilers_session *session, const struct train_result *result)
{
	struct bench_run run;

	bench_run_init(&run);
	if (bench_run_set_ranks(&run, session->ranks) == OK) {
		run.nodes = 1;
		run.nccl_version = version_number(result->nccl);
		run.is_gpu_shared = session->ranks > session->gpus;
		run.is_mps = session->mps.is_on;
		run.started_ns = result->epochs[0].begin_ns;
		text_copy(run.ranks[0].host, sizeof(run.ranks[0].host), result->host);
		text_copy(run.ranks[0].gpu_name, sizeof(run.ranks[0].gpu_name), result->gpu);
		profilers_place(session->profilers, &run);
	}
	bench_run_release(&run);
}

/* Ends are synchronised, so ranks agree but for a moment: an epoch begins with the first and takes what
 * the slowest took. */
static int read_results(struct profilers_session *session, struct session_job *job,
			struct profilers_training *training)
{
	struct train_result result;
	char path[WORK_PATH_BYTES + 300], *text;
	enum status status;
	size_t length = 0;

	for (int32_t rank = 0; rank < training->ranks; rank++) {
		text_format(path, sizeof(path), "%s/train-%d.json", job->directory, rank);
		text = profilers_read_file(path, RESULT_BYTES, &length);
		status = text ? train_read(&result, text, length) : ERR_SYSTEM;
		free(text);
		if (status != OK || (rank > 0 && result.epoch_count != training->epochs)) {
			text_format(job->problem, sizeof(job->problem),
				    "train-%d.json cannot be read", rank);
			return -1;
		}
		training->epochs = result.epoch_count;
		if (rank == 0)
			tell_place(session, &result);
		for (uint32_t i = 0; i < result.epoch_count; i++) {
			const struct train_epoch *epoch = &result.epochs[i];

			if (rank == 0 || epoch->begin_ns < training->epoch_begin_ns[i])
				training->epoch_begin_ns[i] = epoch->begin_ns;
			if (epoch->ns > training->epoch_ns[i])
				training->epoch_ns[i] = epoch->ns;
		}
	}
	return 0;
}

static void read_counts(struct profilers_session *session, const char *directory,
			struct profilers_training *training)
{
	struct count_sum sum;
	uint64_t calls = 0;

	if (directory[0] == '\0' || count_sum_directory(&sum, directory) != OK)
		return;
	for (unsigned int i = 0; i < COUNT_FUNCTIONS; i++) {
		unsigned int function = count_op_function(i);

		if (function != OP_FUNCTION_UNKNOWN) {
			training->issued[function] += sum.entries[i].calls;
			calls += sum.entries[i].calls;
		}
	}
	training->is_counted = calls > 0;
	if (calls == 0)
		profilers_note(session->profilers, "%s",
			       COUNT_LIBRARY " counted no call of the training: this torch does "
					     "not call NCCL through the dynamic linker");
}

static int read_output(struct session_job *job, struct profilers_training *training)
{
	struct session_output output;
	int failed = session_output_read(&output, job);
	enum status status = OK;

	training->output = output.output;
	if (!failed && output.recording)
		status = profilers_training_take(training, output.recording);
	if (!failed && output.profile_count > 0)
		profilers_training_take_ncclsee(training, output.profiles, output.profile_count);
	session_output_release(&output);
	if (status != OK)
		return cli_error("%s: %s", job->name, status_text(status));
	return failed;
}

int session_train(struct profilers_session *session, struct session_job *job)
{
	struct training context = { .request = session->request, .job = job };
	struct profilers_training training = {
		.plugin = job->variant->number,
		.run = job->run,
		.output = PROFILERS_FAILED,
		.ranks = session->ranks,
	};
	char counts[WORK_PATH_BYTES + 300];
	enum status status;
	int failed;

	text_format(context.script, sizeof(context.script), "%s/densenet.py", job->directory);
	if (script_write(context.script) != 0 || free_port(context.port, sizeof(context.port)) != 0)
		return CLI_EXIT_TROUBLE;
	add_counter(session, job, counts, sizeof(counts));
	profilers_variables_add(&job->variables, "OMP_NUM_THREADS", "1");
	failed = session_job_launch(session, job, body, &context);
	if (failed > 1)
		return failed;
	if (!failed && read_results(session, job, &training) != 0)
		failed = cli_error("%s: %s", job->name, job->problem);
	if (!failed) {
		read_counts(session, counts, &training);
		failed = read_output(job, &training);
		if (failed)
			return failed;
	}
	training.problem = job->problem[0] ? job->problem : NULL;
	status = profilers_training(session->profilers, &training);
	return status == OK ? 0 : cli_error("%s: %s", job->name, status_text(status));
}
