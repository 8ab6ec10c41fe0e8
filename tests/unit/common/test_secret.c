/* What looks like a secret, and what NCCL's variables usually hold. */
#include "common/secret.h"

#include <stdint.h>
#include <string.h>

#include "common/attributes.h"
#include "common/text.h"
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
		/* AWS: as documented there, with '/' and '+' */
		"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
		"je7MtGbClwBF/2Zp9Utk/h3yCo8nvbEXAMPLEKEY",
		"ASIAIOSFODNN7EXAMPLE",
		/* GCP */
		"ya29.a0AfH6SMBxyz12345",
		"{\"type\": \"service_account\", \"private_key\": \"abc\"}",
		"AIzaSyA1234567890abcdefghijklmnopqrstuv",
		/* Azure */
		"DefaultEndpointsProtocol=https;AccountName=a;AccountKey=b",
		"https://a.blob.core.windows.net/c?sv=2022&se=2030&sr=c&sig=x",
		/* Slack, GitHub, GitLab, Hugging Face, W&B, SendGrid, OpenAI, NVIDIA */
		"https://hooks.slack.com/services/T0/B0/x",
		"xoxp-1",
		"ghs_1",
		"hf_AbCdEfGhIjKlMnOpQrStUvWxYz",
		"0123456789abcdef0123456789abcdef01234567",
		"SG.ngeVfQFYQlKU0ufo8x5d1A.TwL2iGABf9DHoTf",
		"sk-ant-x",
		"nvapi-0123456789abcdefgh",
		"npm_abcdefghijklmnopqrstuvwxyz0123456789",
		/* command lines */
		"train --password hunter2",
		"train --hf-token x --steps 3",
		"curl -H 'Authorization: x' host",
		"mysql --db_pass x",
		/* by entropy */
		"c2VjcmV0LXZhbHVlLTEyMzQ1Njc4OTA=",
		"id=5,x=c2VjcmV0LXZhbHVlLTEyMzQ1Njc4OTA=",
		"deadbeef00112233445566778899aabbccddeeff",
		"dop_v1_0123456789abcdef0123456789abcdef0123456789abcdef",
		"pul-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
		"name=pul-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b;x",
		"https://example.com/hook/0123456789abcdef0123456789abcdef",
		"/data/run/aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bD1fG",
		"mf4tb2r5ay2068y9d37p1a3c5e7g9i2k4m",
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
		/* hashes that are known as such, and in paths */
		"commit 0123456789abcdef0123456789abcdef01234567",
		"image@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		"2.4.0a0+git0123456",
		"image-sha256-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
		"run_commit_9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
		"/scratch/run-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b/traces",
		"/var/lib/docker/overlay2/"
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef/merged",
		"/nix/store/s66mzxpvicwk07gjbjfw9izjfa797vsw-nccl-2.28",
		/* names of GPUs, hosts, libraries, functions */
		"MIG-GPU-8f3c9a1e-1b2c-4d5e-8f90-123456789abc/1/0",
		"GPU-8F3C9A1E-1B2C-4D5E-8F90-123456789ABC",
		"dgx-h100-a1-0042.cluster.example.com",
		"ip-10-0-12-34.us-west-2.compute.internal",
		"train-llama3-70b-7f9c6d5b8-x2x9k",
		"node[001-064,070,080-099]",
		"gpu-a100-[1-4],gpu-h100-[001-128]",
		"libcudart.so.12.4.127",
		"/usr/lib/x86_64-linux-gnu/libnccl.so.2.28.9",
		"/opt/conda/envs/Py311Torch24Cuda124/lib/python3.11/site-packages/torch/lib",
		"/home/User1/Data2/run3/Qwen25Base7B/checkpoint-12000/"
		"model-00001-of-00064.safetensors",
		"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
		"_ZN4c10d16ProcessGroupNCCL8WorkNCCL4waitENSt6chrono8durationIlSt5ratioILl1ELl1000E"
		"EEE",
		"c10d::ProcessGroupNCCL::watchdogHandler()",
		"TransformerEngineBaseModuleForwardBackwardHook",
		"0xffffffffffffffffffffffffffffffffffffffffffffffff",
		"0x000000000000000000000000ffff00000000ffff",
		"fe80:0000:0000:0000:0002:c903:00ab:cdef",
		"0x7f8c496ae9f66100",
		"ens1f0np0,ens1f1np1,ibp24s0,mlx5_bond_0",
		"--tokens 4096 --key-length 128",
		"train --max-tokens-per-gpu 8192",
		"/etc/pki/authorization/x.pem",
		"token",
		"--password",
	};

	for (size_t i = 0; i < ARRAY_LENGTH(values); i++)
		EXPECT_THAT(values[i], !secret_is_value(values[i]));
}

/* Pairs on both sides of every limit. */
static void values_at_the_limits(void)
{
	static const struct {
		const char *value;
		bool is_secret;
	} cases[] = {
		/* an option starts a word */
		{ "--password hunter2", true },
		{ "use token abc", false },
		{ "x,--token abc", false },
		{ "'--token abc'", true },
		{ "\"--token abc\"", true },
		/* so many bytes follow a beginning */
		{ "xapp-12345678", true },
		{ "xapp-1234567", false },
		/* four fifths of the letters in runs of three and more; 24 bytes */
		{ "abcdefgh1abcdefgh2xK3yZ4", true },
		{ "abcdefgh1abcdefghi2xK3yZ", false },
		{ "abcdefgh1abcdefgh2xK3yZ", false },
		{ "abc1def2ghi3jkl4mno5PQ6r", false },
		{ "ab1cd2ef3gh4ij5kl6mn7OP8", true },
		{ "Abc1Def2Ghi3Jkl4Mno5pqR6", false },
		/* two capitals and two small letters */
		{ "ab1cd2ef3gh4ij5kl6mn7oP8", false },
		{ "AB1CD2EF3GH4IJ5KL6MN7Op8", false },
		{ "aBcDeFgHiJkLmNoPqRsTuVwX", false },
		/* eight letters */
		{ "a12B34c56D78e90F12g34H56", true },
		{ "a12B34c56D78e90F12g34156", false },
		/* an eighth of '-' and '_' */
		{ "aB3dE5-gH7jK9-mN1pQ3-sT5", true },
		{ "aB3dE-5gH7j-K9mN1-pQ3-sT", false },
		/* hexadecimal: 32 digits, eight different ones, four letters */
		{ "0123456789abcdef0123456789abcdef", true },
		{ "0123456789abcdef0123456789abcde", false },
		{ "0123456789abcdef0123456789abcdeg", false },
		{ "01234abc01234abc01234abc01234abc", true },
		{ "0123abc00123abc00123abc00123abc0", false },
		{ "0123456701234567012345670123abcd", true },
		{ "01234567012345670123456701234abc", false },
		/* one case: 32 bytes, four runs of digits, half as many letters as digits */
		{ "mf4tb2r5ay2068y9d37p1a3c5e7g9i2k", true },
		{ "mf4tb2r5ay2068y9d37p1a3c5e7g9i2", false },
		{ "abcdefg1hijklmn2opqrstu3vwxyzab4", true },
		{ "abcdefg1hijklmn2opqrstu3vwxyzabc", false },
		{ "abcdefg1hijklmn2opqrstu3vwxyzab4=", true },
		{ "ABCDEFG2HIJKLMN3OPQRSTU4VWXYZAB5====", true },
		{ "abcdefg1hijklmn2opqrstu3vwxyzabc=", false },
		{ "12cdefg1hijklmn2opqrstuvwxyzabcd", false },
		{ "g12h34i56j78k90l12m34n56o78p90q12", false },
		{ "g12h34i56j78k90l12m34n56o78p90q12r", true },
		/* names with digits all over: 32 bytes, four runs, capitals and small letters */
		{ "Abcdefg1Bcdefgh2Cdefghi3Defghij4", true },
		{ "Abcdef1Bcdefgh2Cdefghi3Defghij4", false },
		{ "Abcdefg1Bcdefgh2Cdefghi3Defghijk", false },
		{ "Abcdefg1Bcdefgh2Cdefghi3defghij4", false },
		{ "ABCDEFg1BCDEFGh2CDEFGHi3DEFGHIj4", true },
		{ "ABCDEFg1BCDEFGh2CDEFGHi3DEFGHIJ4", false },
		/* with '=' at the end: 16 bytes, two kinds, an eighth of '/' */
		{ "aB3dE5gH7jK9mN1p=", true },
		{ "aB3dE5gH7jK9mN1=", false },
		{ "aBcDeFgHiJkLmNoP=", true },
		{ "aBcDeFgHiJkLmNoP==", true },
		{ "aBcDeFgHiJkLmNoP=x", false },
		{ "aBcDeFgHiJkLmNoP==x", false },
		{ "aBcDeFgHiJkLmNoP", false },
		{ "ab+cd+ef+gh+ij+kl+=", false },
		{ "aBcDeFg/HiJkLm/N=", true },
		{ "aBcDe/gHiJk/Lm/N=", false },
		/* with '/': 32 bytes, an eighth of them, no '-' */
		{ "aB3dE5g/H7jK9mN/1pQ3sT5/vW7yZ9bD", true },
		{ "aB3dE5/gH7jK9/mN1pQ3/sT5vW7/yZ9b", true },
		{ "aB3dE/5gH7j/K9mN1/pQ3sT/5vW7y/Z9", false },
		{ "aB3dE5g/H7jK9mN/1pQ3sT5/vW7yZ9b", false },
		{ "aB3dE5g/H7jK9mN/1pQ3sT5/vW7y-9bD", false },
		/* a UUID is none, in any case; one byte more, and it is no UUID */
		{ "8F3c9A1e-1B2c-4D5e-8Ff0-123456789aBc", false },
		{ "8F3c9A1e-1B2c-4D5e-8Ff0-123456789aBcD", true },
		{ "8F3c9A1e-1B2c-4D5e-8Ff0-123456789aBc7", true },
		{ "8G3c9A1e-1B2c-4D5e-8Ff0-123456789aBc", true },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
		EXPECT_THAT(cases[i].value, secret_is_value(cases[i].value) == cases[i].is_secret);
	EXPECT_THAT("a name is more than its ending",
		    secret_is_name("_PKEY") && !secret_is_name("X_PKEY"));
}

static void hashes_by_their_names(void)
{
	static const char hash[] = "0123456789abcdef0123456789abcdef01234567";

	EXPECT(!secret_is_pair("commit", hash) && !secret_is_pair("GIT_SHA", hash));
	EXPECT(!secret_is_pair("CONTAINER_ID", hash) && !secret_is_pair("image_digest", hash));
	EXPECT(secret_is_pair("WANDB", hash) && secret_is_pair("api_token", "1"));
	EXPECT(!secret_is_pair("NCCL_IB_PKEY", "0x8001") && !secret_is_pair("team", "vision"));
	EXPECT_THAT("a name excuses hashes only", secret_is_pair("commit", "ghp_abc"));
}

static uint64_t random_state = 20;

static size_t random_below(size_t most)
{
	random_state = random_state * 6364136223846793005 + 1442695040888963407;
	return (size_t)(random_state >> 33) % most;
}

/* Random tokens as programs make them. A few look like names: their share is small. */
static void tokens_by_entropy(void)
{
	static const struct {
		const char *what, *letters;
		size_t length;
		unsigned int found_percent;
	} kinds[] = {
		{ "a secret key of AWS",
		  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", 40, 95 },
		{ "letters and digits",
		  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", 32, 95 },
		{ "base64 for URLs",
		  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", 43, 95 },
		{ "hexadecimal", "0123456789abcdef", 40, 99 },
		{ "capitals in hexadecimal", "0123456789ABCDEF", 32, 99 },
		{ "small letters and digits", "abcdefghijklmnopqrstuvwxyz0123456789", 40, 95 },
	};

	for (size_t k = 0; k < ARRAY_LENGTH(kinds); k++) {
		unsigned int found = 0, among = 0;

		for (unsigned int i = 0; i < 1000; i++) {
			char token[64], text[128];

			for (size_t at = 0; at < kinds[k].length; at++)
				token[at] =
					kinds[k].letters[random_below(strlen(kinds[k].letters))];
			token[kinds[k].length] = '\0';
			text_format(text, sizeof(text), "--steps 3 --x %s --y", token);
			found += secret_is_value(token);
			among += secret_is_value(text);
		}
		EXPECT_THAT(kinds[k].what, found >= kinds[k].found_percent * 10);
		EXPECT_THAT("the same among other words", among >= found);
	}
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
	EXPECT(is_line("label.api_token=1") && is_line("label.x=ghp_abc") &&
	       !is_line("label.commit=0123456789abcdef0123456789abcdef01234567"));
	EXPECT(is_line("trace=/data/token=abc/r0.ringside") && !is_line("trace=/data/r0.ringside"));
	EXPECT(is_line("exe=/x/ghp_abc") && is_line("message.1=X=ghp_abc is not a size"));
	EXPECT_THAT("other lines are never secret", !is_line("job=token=1") && !is_line("env") &&
							    !is_line("") && !is_line("env.TOKEN"));
	EXPECT_THAT("only up to its end", !secret_is_line("env.A=1ghp_abc,token=", 7));
	memset(long_line, 'v', sizeof(long_line) - 1);
	memcpy(long_line, "env.NCCL_A=", 11);
	EXPECT(is_line(long_line));
	EXPECT_THAT("the longest line that is examined",
		    secret_is_line(long_line, 4096) && !secret_is_line(long_line, 4095));
}

int main(void)
{
	names_that_speak_of_secrets();
	values_that_are_secrets();
	values_that_are_none();
	values_at_the_limits();
	lines_of_a_process();
	hashes_by_their_names();
	tokens_by_entropy();
	return tap_done();
}
