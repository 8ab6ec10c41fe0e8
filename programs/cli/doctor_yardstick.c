/* What a job is compared with: a baseline, expected bandwidths. */
#include "programs/cli/baseline_file.h"
#include "programs/cli/cli_errors.h"
#include "programs/cli/diff_expected.h"
#include "programs/cli/doctor_case.h"

static int read_expected(struct doctor_yardstick *yardstick, const char *path)
{
	enum diff_expected_found found = diff_expected_read(&yardstick->expected, path);

	yardstick->has_expected = found == DIFF_EXPECTED_FOUND;
	if (yardstick->has_expected)
		diff_expected_warn(&yardstick->expected, path);
	if (found == DIFF_EXPECTED_NOT)
		return cli_error(
			"%s: no file of expected bandwidths: what nccl-tests or 'ringside bench' "
			"wrote will do",
			path);
	return found == DIFF_EXPECTED_BAD ? CLI_EXIT_TROUBLE : 0;
}

int doctor_yardstick_read(struct doctor_yardstick *yardstick, const struct doctor_options *options)
{
	int code = 0;

	if (options->baseline) {
		code = baseline_file_read(&yardstick->baseline, options->baseline);
		yardstick->has_baseline = code == 0;
	}
	if (code == 0 && options->expected)
		code = read_expected(yardstick, options->expected);
	return code;
}

void doctor_yardstick_release(struct doctor_yardstick *yardstick)
{
	if (yardstick->has_baseline)
		baseline_release(&yardstick->baseline);
	if (yardstick->has_expected)
		expected_release(&yardstick->expected);
	yardstick->has_baseline = yardstick->has_expected = false;
}
