/* ringside export: formats, directories, what it refuses and what it says. */
#include "tests/support/command_play.h"
#include "tests/tap.h"

static void forms(void)
{
	static const char *const lines[] = {
		"export traces -o - -f csv --rank 0",
		"export traces --rank 0 -o - -f jsonl --op Broadcast",
		"export traces -o rows.csv",
		"export traces -o rows.jsonl --json",
		"export traces -o rows.parquet",
		"export -q traces -o quiet.csv",
		"export traces -o upper.CSV",
		"export traces -o inspector.log -f inspector",
		"export traces --rank 0 -o inspector.log -f inspector",
		"export stuck --rank 0 -o - -f inspector",
		"export stuck -o live.csv",
		"export open -o open.csv",
		"export lossy -o lossy.csv",
		"export lossy -o lossy.csv --json",
		"export traces stuck -o both.csv --since 2ms --until 3ms",
		"export traces -o some.csv --comm tp --rank 1",
		"export traces -o tagged.csv --tag 7",
		"export damaged -o damaged.csv",
		"export damaged -o damaged.csv --json",
		NULL,
	};

	command_each(lines);
	command_show("inspector.log");
	EXPECT_THAT("formats and summaries",
		    command_expected("tests/unit/cmds/expected/export-forms"));
}

static void directories(void)
{
	static const char *const lines[] = {
		"export sim -o lake/ -f csv",
		"export sim -o lake/ -f csv",
		"export sim -o lake -f jsonl --force --rank 0 --rows 20",
		"export sim -o lake --force -f csv --rows 21 --json --rank 0",
		"export sim --partition -o named -f csv --rank 1",
		"export sim -o empty --rank 1 -f jsonl",
		"export sim -o existing",
		"export sim -o rows.csv/",
		"export sim -o rows.csv --rows 5",
		"export sim -o - --rows 5",
		"export sim -o - --partition",
		"export sim -o some.csv --force",
		"export sim -o dir/ -f inspector",
		NULL,
	};

	command_directory("empty");
	command_directory("existing");
	command_write_text("existing/mine", "mine\n");
	command_each(lines);
	command_run(cmds_main, "ringside", "ls lake named empty existing");
	EXPECT_THAT("directories", command_expected("tests/unit/cmds/expected/export-directories"));
}

static void refusals(void)
{
	static const char *const lines[] = {
		"export traces",
		"export traces -o x",
		"export traces -o x.csv.gz",
		"export traces -f xls -o x",
		"export traces -f ''",
		"export traces -o ''",
		"export traces --rows 0 -o x.csv",
		"export traces --rows x -o x.csv",
		"export traces --rows -1 -o x.csv",
		"export traces -o -",
		"export nowhere -o x.csv",
		"export garbage -o x.csv",
		"export empty -o x.csv",
		"export traces -o no/x.csv",
		"export traces -o /dev/full -f csv",
		"export traces -o /dev/zero -f csv",
		"export traces -o /dev/null -f csv",
		"export traces -o x.csv --comm nobody",
		"export traces -o x.csv --op Nothing",
		"export traces nowhere -o partly.csv",
		NULL,
	};

	command_write_text("garbage", "neither a trace nor a log\n");
	command_each(lines);
	command_show("x.csv");
	EXPECT_THAT("refusals", command_expected("tests/unit/cmds/expected/export-refusals"));
}

int main(void)
{
	size_t length;
	char *bytes;

	command_begin();
	command_play.most_json = 70;
	command_make("traces");
	command_make("stuck");
	command_make("open");
	command_make("lossy");
	bytes = command_read(command_path("traces/r0-nodea-999999990-4242.ringside"), &length);
	memcpy(bytes + 700, "XXXX", 4);
	command_write("damaged", bytes, length);
	free(bytes);
	command_sim("-o sim --nodes 2 --gpus 1 -w ddp --iterations 2 --seed 1 --kernel");
	forms();
	directories();
	refusals();
	return tap_done();
}
