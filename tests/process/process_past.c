/* process_past JOB LAST PAST: what an agent would have kept of the recorded job JOB/job, in JOB/recent and JOB/aged. */
#include "tests/support/followed.h"

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	followed_job(argv[1], strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10));
	return 0;
}
