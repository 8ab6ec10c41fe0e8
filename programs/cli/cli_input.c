#include "programs/cli/cli_input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "programs/cli/cli_errors.h"
#include "programs/cli/cli_memory.h"
#include "programs/cli/cli_unpack.h"
#include "recording/recording.h"

/* A thousand ranks that were killed say the same thing. */
enum { TOLD_OF_A_KIND = 5 };

void cli_input_init(struct cli_input *input)
{
	input->paths = NULL;
	input->path_count = 0;
	recording_init(&input->recording);
}

void cli_input_release(struct cli_input *input)
{
	free(input->paths);
	input->paths = NULL;
	recording_release(&input->recording);
}

void cli_input_path(struct cli_input *input, const char *path)
{
	input->paths = cli_realloc(input->paths, (input->path_count + 1) * sizeof(*input->paths));
	input->paths[input->path_count++] = path;
}

static enum status add_path(struct cli_input *input, const char *path, unsigned int flags)
{
	unsigned char *bytes;
	size_t length;
	enum status status = cli_unpack(path, CLI_UNPACK_MOST, &bytes, &length);

	if (status == ERR_RANGE || status == ERR_FORMAT || status == ERR_TRUNCATED) {
		recording_load_trouble(&input->recording, RECORDING_DAMAGE, path, NULL, "%s",
				       status == ERR_RANGE
					       ? "unpack it by hand: it is too large to do so here"
					       : "what is packed in it is damaged");
		return OK;
	}
	if (status == ERR_UNKNOWN)
		return recording_add(&input->recording, path, flags);
	if (status == OK) {
		status = recording_add_memory(&input->recording, path, bytes, length, flags);
		free(bytes);
	}
	return status;
}

int cli_input_read(struct cli_input *input, unsigned int flags)
{
	const char *directory = getenv("RINGSIDE_SHM");
	enum status status = OK;

	/* Also for @PID. */
	if (directory && directory[0])
		input->recording.directory = directory;
	for (size_t i = 0; i < input->path_count && status == OK; i++)
		status = add_path(input, input->paths[i], flags);
	if (input->path_count == 0)
		status = recording_add_machine(&input->recording, NULL, flags);
	if (status == OK)
		status = recording_finish(&input->recording);
	if (status == ERR_SYSTEM)
		return cli_error("cannot read: %s", strerror(errno));
	return status == OK ? 0 : cli_error("cannot read: %s", status_text(status));
}

bool cli_input_is_trouble(const struct cli_input *input, const struct recording_trouble *trouble)
{
	if (trouble->kind != RECORDING_FOREIGN)
		return true;
	for (size_t i = 0; i < input->path_count; i++)
		if (strcmp(input->paths[i], trouble->path) == 0)
			return true;
	return false;
}

bool cli_input_complain(const struct cli_input *input, bool has_cuts)
{
	const struct recording *recording = &input->recording;
	size_t told[RECORDING_NOTHING + 1] = { 0 };
	size_t left_out = recording->troubles_left_out;
	bool is_any = false;

	for (size_t i = 0; i < recording->trouble_count; i++) {
		const struct recording_trouble *trouble = &recording->troubles[i];

		if (!cli_input_is_trouble(input, trouble) ||
		    (trouble->kind == RECORDING_CUT && !has_cuts))
			continue;
		is_any = true;
		if (told[trouble->kind]++ < TOLD_OF_A_KIND)
			cli_error("%s: %s", trouble->path, trouble->what);
		else
			left_out++;
	}
	if (left_out > 0 && is_any)
		cli_error("%zu more of such troubles; 'ringside verify' has all", left_out);
	for (size_t i = 0; i < input->path_count && recording->count == 0 && !is_any; i++)
		cli_error("%s: nothing is recorded there", input->paths[i]);
	return is_any || (recording->count == 0 && input->path_count > 0);
}

int cli_input_nothing(void)
{
	return cli_error(CLI_INPUT_NOTHING);
}

uint64_t cli_input_operations(const struct recording *recording)
{
	uint64_t count = 0;

	for (size_t i = 0; i < recording->count; i++)
		count += recording->processes[i]->recorded + recording->processes[i]->flight_count;
	return count;
}
