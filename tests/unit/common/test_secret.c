/* What looks like a secret, and what NCCL's variables usually hold. */
#include "common/secret.h"

#include <string.h>

#include "common/attributes.h"
#include "tests/tap.h"

static void names_that_speak_of_secrets(void)
{
	static const char *const names[] = {
		"NCCL_API_TOKEN", "UCX_PASSWORD",    "NCCL_auth_file", "FI_PRIVATE_KEY",
		"NCCL_DB_PWD",	  "SLURM_JWT",	     "FI_BEARER",      "NCCL_COOKIE",
		"UCX_SIGNATURE",  "FI_SESSION_ID",   "NCCL_CREDS",     "X_SECRET",
		"NCCL_ApiKey",	  "NCCL_PASSPHRASE",
	};
	static const char *const others[] = {
		"NCCL_DEBUG",
		"NCCL_IB_HCA",
		"NCCL_IB_PKEY",
		"NCCL_TUNER_PLUGIN",
		"NCCL_SOCKET_IFNAME",
		"UCX_TLS",
		"TORCH_NCCL_BLOCKING_WAIT",
		"FI_PROVIDER",
		"CUDA_VISIBLE_DEVICES",
		"MASTER_ADDR",
		"NCCL_COMM_ID",
		"",
	};

	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		EXPECT_THAT(names[i], secret_is_name(names[i]));
	for (size_t i = 0; i < ARRAY_LENGTH(others); i++)
		EXPECT_THAT(others[i], !secret_is_name(others[i]));
}

static void values_that_are_secrets(void)
{
	static const char *const values[] = {
		"Bearer abc",
		"bearer abc",
		"Basic bWU6cHc=",
		"Authorization: x",
		"https://h/?token=abc",
		"https://h/?a=b&access_token=abc",
		"--password=abc",
		"passwd=abc",
		"pwd=abc",
		"client_secret = abc",
		"api_key=abc",
		"{\"password\": \"abc\"}",
		"token:abc",
		"token%3Dabc",
		"eyJhbGciOiJIUzI1NiJ9.e30.abc",
		"x eyJ0",
		"ghp_abc",
		"gho_abc",
		"https://h/ghp_abc",
		"github_pat_abc",
		"glpat-abc",
		"AKIAIOSFODNN7EXAMPLE",
		"xoxb-1-2",
		"sk-proj-abc",
		"a,sk-abc",
		"hf_abc",
		"-----BEGIN PRIVATE KEY-----",
		"user:p@h",
		":p@h",
		"u:@h",
		"http://me:pa@ss/wo:rd@node1:80",
		"https://token@host/x",
		"user%3Ap%40h",
		"aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bD1fG3hJ5",
	};

	for (size_t i = 0; i < ARRAY_LENGTH(values); i++)
		EXPECT_THAT(values[i], secret_is_value(values[i]));
}

static void values_that_are_none(void)
{
	static const char *const values[] = {
		"",
		"1",
		"INFO",
		"mlx5_0",
		"mlx5_0:1",
		"=mlx5_0:1,mlx5_1:1",
		"^mlx5_1",
		"^lo,docker0",
		"=eth0",
		"allreduce:ring;allgather:tree,ring;broadcast:ring",
		"^Tree",
		"LL,LL128,Simple",
		"INIT,NET,GRAPH",
		"/var/log/nccl.%h.%p.log",
		"/mnt/disk-1/task-2/hf_cache/topology.xml",
		"/opt/keys/token.xml",
		"libnccl-tuner.so",
		"rc,cuda_copy,cuda_ipc",
		"10.0.0.1:29500",
		"[fe80::1%eth0]:29500",
		"me@node1:80",
		"GPU-8f3c9a1e-1b2c-4d5e-8f90-123456789abc",
		"0,1,2,3,4,5,6,7",
		"quiet,mask_cpu:0x000000000000FFFF,0x00000000FFFF0000",
		"team=vision,model=vit",
		"***",
	};

	for (size_t i = 0; i < ARRAY_LENGTH(values); i++)
		EXPECT_THAT(values[i], !secret_is_value(values[i]));
}

static bool is_line(const char *line)
{
	return secret_is_line(line, strlen(line));
}

static void lines_of_a_process(void)
{
	static char long_line[5000];

	EXPECT(is_line("env.NCCL_TOKEN=1") && is_line("env.NCCL_X=ghp_abc"));
	EXPECT(!is_line("env.NCCL_ALGO=Ring") && !is_line("env.NCCL_X=***"));
	EXPECT_THAT("other lines are never secret", !is_line("labels=token=1") && !is_line("env") &&
							    !is_line("") && !is_line("env.TOKEN"));
	EXPECT_THAT("only up to its end", !secret_is_line("env.A=1ghp_abc,token=", 7));
	memset(long_line, 'v', sizeof(long_line) - 1);
	memcpy(long_line, "env.NCCL_A=", 11);
	EXPECT(is_line(long_line));
}

int main(void)
{
	names_that_speak_of_secrets();
	values_that_are_secrets();
	values_that_are_none();
	lines_of_a_process();
	return tap_done();
}
