/* ringside report: tables, forms, filters and files. */
#include "tests/support/command_play.h"
#include "tests/tap.h"

static void tables_and_forms(void)
{
	static const char *const lines[] = {
		"report one",
		"report --answer one",
		"report --all one",
		"report --csv one",
		"report --by function,size one",
		"report --by comm,rank --csv one",
		"report --table rank one",
		"report --table comm --csv one",
		"report --table windows one",
		"report --table iterations --csv one",
		"report --by rank --table size one",
		"report --table nothing one",
		"report --table ''",
		"report --by ''",
		"report --by functoin one",
		"report --by function,xyzzy one",
		"report --by abcdefghijabcdefghijabcdefghijabcdefghij one",
		"report --json --csv one",
		"report --answer --all one",
		"report --json --table size traces",
		"report --html - --json one",
		"report --csv --all one",
		NULL,
	};

	command_each(lines);
	EXPECT_THAT("tables and forms of the report",
		    command_expected("tests/unit/cmds/expected/report-tables"));
}

static void filters(void)
{
	static const char *const lines[] = {
		"report --answer one --rank 1",
		"report --answer one --comm tp-0",
		"report --answer one --op Send,recv",
		"report --answer one --since 100ms --until 500ms",
		"report --answer one --since -100ms",
		"report --answer one --since 1h",
		"report --answer one --since x",
		"report --answer one --until 25:00",
		"report --answer one --tag 0",
		"report --answer one --job nothing",
		"report --answer one two --job sim-2",
		"report --answer one two",
		"report --answer one --rank 0-1,3",
		"report --answer one --rank 100-200",
		"report --answer one --rank x",
		"report --answer one --rank 3-1",
		"report --answer one --op Nothing",
		"report --answer one --op AllRedcue",
		"report --answer one --comm a --comm b",
		"report --answer again",
		"report --answer again --run 1",
		"report --answer again --run all",
		"report --answer again --run 3",
		"report --answer again --run 0",
		"report --answer again --run x",
		NULL,
	};

	command_each(lines);
	EXPECT_THAT("filters of the report",
		    command_expected("tests/unit/cmds/expected/report-filters"));
}

static void files(void)
{
	static const char *const lines[] = {
		"report --answer one -o answer.txt",
		"report one -o ''",
		"report one -o nowhere/x",
		"report one -o /dev/full",
		"report --strict --answer one",
		"report --strict damaged",
		"report --answer damaged",
		"report --strict mixed",
		"report --answer mixed",
		"report --answer cut",
		"report --strict cut",
		"report --answer hung",
		"report --answer lossy",
		"report --answer stuck",
		"report nowhere",
		"report empty",
		"report log",
		"report logs",
		"report",
		NULL,
	};
	size_t length;
	char *bytes;

	command_directory("damaged");
	command_directory("mixed");
	command_directory("cut");
	command_directory("empty");
	command_directory("logs");
	bytes = command_read(command_path("traces/r0-nodea-999999990-4242.ringside"), &length);
	command_write("mixed/one.ringside", bytes, length);
	command_write("cut/one.ringside", bytes, length - 100);
	memcpy(bytes + 700, "XXXX", 4);
	command_write("damaged/one.ringside", bytes, length);
	free(bytes);
	command_write_text("mixed/README", "a note\n");
	command_write_text("log", "node1:12:34 [0] NCCL INFO NCCL version 2.28.9+cuda12.9\n");
	command_write_text("logs/nccl.log", "node1:12:34 [0] NCCL WARN something\n");
	for (size_t i = 0; lines[i + 1] != NULL; i++)
		command(lines[i]);
	command_show("answer.txt");
	command("report --answer one -o answer.txt --json");
	command_run(cmds_main, "ringside", "report --html page.html one");
	EXPECT_THAT("files of the report",
		    command_expected("tests/unit/cmds/expected/report-files"));
}

int main(void)
{
	command_begin();
	command_play.most_json = 60;
	command_make("traces");
	command_make("lossy");
	command_make("stuck");
	command_sim("-o one --nodes 1 --gpus 4 -w tp-pp --tp 2 --iterations 3 --seed 1 --kernel");
	command_sim("-o two --nodes 2 --gpus 1 --iterations 2 --seed 2");
	command_sim("-o hung --nodes 1 --gpus 4 --seconds 4s -f never-arrives:rank=2 --at 2s");
	command_sim("-o again --nodes 1 --gpus 2 --iterations 1 --seed 3");
	command_sim("-o again --nodes 1 --gpus 2 --iterations 1 --seed 3 --attempt 2 --begin 100s");
	tables_and_forms();
	filters();
	files();
	return tap_done();
}
