/* Parsing faults and numbers. */
#include "tests/tap.h"

#include <string.h>

#include "common/text.h"
#include "sim/sim_job.h"

static struct sim_fault fault;
static char why[512];

static enum status parse(const char *text)
{
	why[0] = '\0';
	return sim_fault_parse(&fault, text, why, sizeof(why));
}

static void test_faults(void)
{
	EXPECT(parse("none") == OK && fault.kind == SIM_FAULT_NONE);
	EXPECT(parse("slow-rank:rank=3,factor=2.5,at=1.5s,until=3s") == OK);
	EXPECT_EQUAL(fault.kind, SIM_SLOW_RANK);
	EXPECT_EQUAL(fault.rank, 3);
	EXPECT_EQUAL(fault.factor_permille, 2500);
	EXPECT_EQUAL(fault.at_ns, 1500000000);
	EXPECT_EQUAL(fault.until_ns, 3000000000);
	EXPECT(fault.has_at);
	EXPECT(parse("slow-link:to=5,from=4") == OK);
	EXPECT(fault.from == 4 && fault.to == 5 && fault.factor_permille == 4000 && !fault.has_at);
	EXPECT(parse("never-arrives:rank=0,comm=tp") == OK && fault.role == SIM_TENSOR);
	EXPECT(parse("mismatch:rank=0,what=function") == OK && fault.what == SIM_MISMATCH_FUNCTION);
	EXPECT(parse("mismatch:rank=0,what=order") == OK && fault.what == SIM_MISMATCH_ORDER);
	EXPECT(parse("mismatch:rank=0,what=datatype") == OK && fault.what == SIM_MISMATCH_DATATYPE);
	EXPECT(parse("mismatch:rank=0,what=root") == OK && fault.what == SIM_MISMATCH_ROOT);
	EXPECT(parse("stuck-send:rank=3") == OK && fault.link == 0 && fault.channel == -1 &&
	       fault.to == -1);
	EXPECT(parse("stuck-send:rank=3,link=2,to=4") == OK && fault.link == 2 && fault.to == 4);
	EXPECT(parse("stuck-send:rank=3,channel=0") == OK && fault.channel == 0);
	EXPECT(parse("deadlock:rank=3,peer=1") == OK && fault.rank == 3 && fault.peer == 1);
	EXPECT(parse("slow-nvlink") == OK && fault.node == -1 && fault.factor_permille == 4000);
	EXPECT(parse("slow-nvlink:node=2,factor=3") == OK && fault.node == 2);
	EXPECT(parse("slow-rail:rail=3") == OK && fault.rail == 3);
	EXPECT(parse("slow-uplink:node=1") == OK && fault.what == SIM_BOTH_WAYS);
	EXPECT(parse("slow-uplink:node=1,what=receiving") == OK && fault.what == SIM_RECEIVING);
	EXPECT(parse("slow-receiver:rank=1") == OK && fault.what == SIM_NO_CREDITS);
	EXPECT(parse("slow-receiver:rank=1,what=wire") == OK && fault.what == SIM_FULL_WIRE);
	EXPECT(parse("starved:rank=1") == OK && fault.factor_permille == 5000);
	EXPECT(parse("power-cap") == OK && fault.factor_permille == 1400);
	EXPECT(!sim_fault_hangs(&fault));
	EXPECT(parse("never-arrives:rank=1,at=1s,until=2s") == OK && !sim_fault_hangs(&fault));
	EXPECT(parse("gpu-stuck:rank=1") == OK && fault.what == SIM_NOT_STARTED);
	EXPECT(parse("gpu-stuck:rank=1,what=not-launched") == OK && fault.what == SIM_NOT_LAUNCHED);
	EXPECT(parse("gpu-stuck:rank=1,what=not-producing") == OK &&
	       fault.what == SIM_NOT_PRODUCING);
	EXPECT(parse("stop:rank=7") == OK && fault.kind == SIM_STOP);
	EXPECT(parse("kill:rank=7") == OK && fault.role == -1);
	EXPECT(sim_fault_hangs(&fault));
	EXPECT(parse("slow-nvlink") == OK && !sim_fault_hangs(&fault));
	EXPECT(parse("kill:rank=7") == OK);
}

static void test_refused(void)
{
	EXPECT(parse("slow") == ERR_UNKNOWN &&
	       strstr(why, "use one of none, slow-rank, slow-link"));
	EXPECT(parse("slow-rail") != OK && strstr(why, "needs rail="));
	EXPECT(parse("slow-uplink:node=1,what=up") != OK &&
	       strstr(why, "both, sending or receiving"));
	EXPECT(parse("slow-receiver:rank=1,what=x") != OK && strstr(why, "credits or wire"));
	EXPECT(parse("slow-rank") != OK && strstr(why, "needs rank="));
	EXPECT(parse("slow-rank:rank=x") != OK && strstr(why, "a rank number"));
	EXPECT(parse("slow-rank:rank=-1") != OK && strstr(why, "a rank number"));
	EXPECT(parse("slow-rank:rank=1,factor=0.5") != OK && strstr(why, "factor of at least 1"));
	EXPECT(parse("slow-rank:rank=1,speed=2") != OK && strstr(why, "no key 'speed'"));
	EXPECT(parse("kill:rank=1,factor=2") != OK && strstr(why, "valid keys: rank=R[,at=T]"));
	EXPECT(parse("slow-link:from=1,to=1") != OK && strstr(why, "same rank"));
	EXPECT(parse("kill:rank=1,at=soon") != OK && strstr(why, "a time, e.g. 30s"));
	EXPECT(parse("mismatch:rank=1,what=colour") != OK &&
	       strstr(why, "datatype, root or order"));
	EXPECT(parse("gpu-stuck:rank=1,what=count") != OK && strstr(why, "not-started, not-lau"));
	EXPECT(parse("deadlock:rank=1") != OK && strstr(why, "needs peer="));
	EXPECT(parse("deadlock:rank=1,peer=1") != OK && strstr(why, "same rank"));
	EXPECT(parse("stuck-send:rank=1,link=0") != OK && strstr(why, "a number from 1"));
	EXPECT(parse("stuck-send:rank=1,link=1,channel=2") != OK && strstr(why, "only one of"));
	EXPECT(parse("never-arrives:rank=1,comm=x") != OK && strstr(why, "world, tp, pp"));
	EXPECT(parse("kill:rank") != OK);
	EXPECT_THAT("a rejected fault does not change the last one", fault.kind == SIM_KILL);
}

static void test_numbers(void)
{
	uint64_t ns = 0, permille = 0, sizes[2];
	size_t count = 0;

	EXPECT(text_duration("30s", &ns) == OK && ns == UINT64_C(30000000000));
	EXPECT(text_duration("30", &ns) == OK && ns == UINT64_C(30000000000));
	EXPECT(text_duration("1.25s", &ns) == OK && ns == 1250000000);
	EXPECT(text_duration("500ms", &ns) == OK && ns == 500000000);
	EXPECT(text_duration("2m", &ns) == OK && ns == UINT64_C(120000000000));
	EXPECT(text_duration("7us", &ns) == OK && ns == 7000);
	EXPECT(text_duration("", &ns) == ERR_FORMAT);
	EXPECT(text_duration("s", &ns) == ERR_FORMAT);
	EXPECT(text_duration("1.s", &ns) == ERR_FORMAT);
	EXPECT(text_duration("1..5s", &ns) == ERR_FORMAT);
	EXPECT(text_duration("3 s", &ns) == ERR_FORMAT);
	EXPECT(text_duration("-3s", &ns) == ERR_FORMAT);
	EXPECT(text_duration("99999999999999999999s", &ns) == ERR_RANGE);
	EXPECT(text_permille("1.5", 1000, &permille) == OK && permille == 1500);
	EXPECT(text_permille("0.9", 1000, &permille) == ERR_RANGE);
	EXPECT(text_permille("1.5x", 1000, &permille) == ERR_FORMAT);
	EXPECT(text_sizes("1KiB,4MiB", sizes, 2, &count) == OK && count == 2 && sizes[0] == 1024 &&
	       sizes[1] == 4 << 20);
	EXPECT(text_sizes("1,2,3", sizes, 2, &count) == ERR_RANGE);
	EXPECT(text_sizes("0", sizes, 2, &count) == ERR_RANGE);
	EXPECT(text_sizes("1,,2", sizes, 2, &count) == ERR_FORMAT);
}

/* The reason why a job with these options is rejected; "" if it is not. */
static const char *refusal(struct sim_options options)
{
	why[0] = '\0';
	sim_options_finish(&options, why, sizeof(why));
	return why;
}

static void test_options(void)
{
	struct sim_options options, other;

	sim_options_init(&options);
	EXPECT(refusal(options)[0] == '\0');
	other = options;
	other.gpus = 1;
	EXPECT(strstr(refusal(other), "does not communicate"));
	other = options;
	other.workload = SIM_TP_PP;
	other.tensor = 3;
	EXPECT(strstr(refusal(other), "groups of 3 (--tp)"));
	other = options;
	parse("kill:rank=8");
	other.faults[other.fault_count++] = fault;
	EXPECT(strstr(refusal(other), "the last rank is 7"));
	other = options;
	parse("degraded-network");
	other.faults[other.fault_count++] = fault;
	EXPECT(strstr(refusal(other), "one node has no network"));
	other = options;
	parse("never-arrives:rank=1,comm=ep");
	other.faults[other.fault_count++] = fault;
	EXPECT(strstr(refusal(other), "ddp has no communicator 'ep'"));
	other = options;
	parse("deadlock:rank=1,peer=9");
	other.faults[other.fault_count++] = fault;
	EXPECT(strstr(refusal(other), "no rank 9 (peer=)"));
	other = options;
	parse("deadlock:rank=1,peer=2");
	other.faults[other.fault_count++] = fault;
	EXPECT(strstr(refusal(other), "ddp has only one communicator"));
	other = options;
	parse("slow-nvlink:node=1");
	other.faults[other.fault_count++] = fault;
	EXPECT(strstr(refusal(other), "no node 1; the last node is 0"));
	other = options;
	other.workload = SIM_FSDP;
	parse("mismatch:rank=1,what=root");
	other.faults[other.fault_count++] = fault;
	EXPECT(strstr(refusal(other), "fsdp has no call with a root"));
	other = options;
	other.release = 22707;
	parse("gpu-stuck:rank=1,what=not-launched");
	other.faults[other.fault_count++] = fault;
	EXPECT(strstr(refusal(other), "use --release 2.28"));
	other = options;
	parse("slow-rank:rank=1,at=5s,until=4s");
	other.faults[other.fault_count++] = fault;
	EXPECT(strstr(refusal(other), "ends (until=) before it begins"));
	parse("kill:rank=1,at=20s");
	options.faults[options.fault_count++] = fault;
	sim_options_finish(&options, why, sizeof(why));
	EXPECT_THAT("a job lasts ten seconds longer than the start of its last fault",
		    options.seconds_ns == UINT64_C(30000000000));
}

int main(void)
{
	test_faults();
	test_refused();
	test_numbers();
	test_options();
	return tap_done();
}
