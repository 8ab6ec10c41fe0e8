/* What a plugin left behind in its job's directories: read as what its kind writes. */
#include <fts.h>
#include <stdlib.h>
#include <string.h>

#include "cmds/cli.h"
#include "common/text.h"
#include "import/ncclsee_read.h"
#include "programs/cli/profilers_session.h"
#include "recording/recording.h"

/* Files of ours are read where the mode leaves them: the ring of a region, or the trace. */
static const char *where(const struct session_job *job)
{
	bool is_region = job->variant->kind == PROFILERS_RINGSIDE &&
			 strcmp(job->variant->setting, "flight") == 0;

	return is_region ? job->place.regions : job->place.output;
}

static void unreadable(struct session_output *output, struct session_job *job, const char *path,
		       const char *why)
{
	output->output = PROFILERS_UNREADABLE;
	text_format(job->problem, sizeof(job->problem), "%s: %s", path, why);
}

/* A path below the job's directory, which is gone when somebody reads it. */
static const char *short_path(const struct session_job *job, const char *path)
{
	const char *slash = strrchr(path, '/');

	if (strncmp(path, job->place.output, strlen(job->place.output)) == 0 &&
	    path[strlen(job->place.output)] == '/')
		return path + strlen(job->place.output) + 1;
	return slash ? slash + 1 : path;
}

static int read_recording(struct session_output *output, struct session_job *job)
{
	const struct recording_trouble *trouble;
	struct recording *recording = cli_realloc(NULL, sizeof(*recording));
	enum status status;

	recording_init(recording);
	output->recording = recording;
	recording->directory = job->place.regions;
	status = recording_add(recording, where(job), 0);
	if (status == OK)
		status = recording_finish(recording);
	if (status != OK)
		return cli_error("%s: cannot read what was recorded: %s", job->name,
				 status_text(status));
	output->output = PROFILERS_READ;
	trouble = recording->trouble_count ? &recording->troubles[0] : NULL;
	if (trouble)
		text_format(job->problem, sizeof(job->problem), "%s: %s",
			    short_path(job, trouble->path), trouble->what);
	if (recording->count == 0)
		output->output = PROFILERS_UNREADABLE;
	return 0;
}

static bool is_profile(const FTSENT *at)
{
	const char *dot = strrchr(at->fts_name, '.');

	return at->fts_info == FTS_F && dot && strcmp(dot, ".csv") == 0;
}

static void read_profiles(struct session_output *output, struct session_job *job)
{
	char *const paths[] = { job->place.output, NULL };
	FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	struct ncclsee_profile profile;
	FTSENT *at;

	output->output = PROFILERS_SILENT;
	while (walk && (at = fts_read(walk)) != NULL) {
		enum status status;

		if (!is_profile(at))
			continue;
		status = ncclsee_read(&profile, at->fts_path);
		if (status != OK) {
			unreadable(output, job, at->fts_name,
				   profile.problem ? profile.problem : status_text(status));
			break;
		}
		output->profiles = cli_realloc(output->profiles, (output->profile_count + 1) *
									 sizeof(*output->profiles));
		output->profiles[output->profile_count++] = profile;
		output->output = PROFILERS_READ;
	}
	if (walk)
		fts_close(walk);
}

int session_output_read(struct session_output *output, struct session_job *job)
{
	uint64_t bytes;
	size_t files;

	*output = (struct session_output){ .output = PROFILERS_SILENT };
	profilers_count_files(where(job), &files, &bytes);
	switch (job->variant->kind) {
	case PROFILERS_RINGSIDE:
	case PROFILERS_INSPECTOR:
	case PROFILERS_COMMA:
		/* Files that were opened and never written are no output. */
		return bytes > 0 ? read_recording(output, job) : 0;
	case PROFILERS_NCCLSEE:
		read_profiles(output, job);
		return 0;
	case PROFILERS_UNKNOWN:
		unreadable(output, job, job->variant->label,
			   "what it writes cannot be read here: its cost alone is compared");
		return 0;
	default: /* without a plugin */
		output->output = PROFILERS_READ;
		return 0;
	}
}

void session_output_release(struct session_output *output)
{
	if (output->recording)
		recording_release(output->recording);
	free(output->recording);
	free(output->profiles);
	*output = (struct session_output){ .output = PROFILERS_FAILED };
}
