/*
 * A driver for fuzz targets where clang's libFuzzer is not available. Links with a target's
 * LLVMFuzzerTestOneInput(), first passes it every file of the corpus unchanged, then generated
 * inputs: random bytes, or a file of the corpus with a few bytes changed, cut or duplicated.
 *
 *	fuzz_x [-seconds=N] [-runs=N] [-seed=N] [-start=N] [-max_len=N] [FILE|DIRECTORY...]
 *
 * An input depends only on the corpus, the seed and its number: if one kills the target, the driver
 * prints the -seed and -start that reproduce it.
 */
#include "fuzz/fuzz_main.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/text.h"

enum { CORPUS_MAX = 4096, INPUT_MAX = 1 << 20 };

struct file {
	unsigned char *bytes;
	size_t size;
};

struct options {
	int64_t seconds;
	int64_t runs;
	int64_t seed;
	int64_t start;
	int64_t max_len;
};

static struct file corpus[CORPUS_MAX];
static size_t corpus_count;
static struct options options = { .seed = 1, .max_len = 4096 };
static int64_t current;

/* AddressSanitizer and its relatives have this; a plain build does not. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void say_where(void)
{
	fprintf(stderr, "fuzz: this input again: -seed=%lld -start=%lld -runs=1\n",
		(long long)options.seed, (long long)current);
}

static uint64_t next_random(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15u;
	return hash_word(*state, *state >> 32);
}

static void give(const unsigned char *bytes, size_t size)
{
	/* A copy of the exact size, so that reads past the end are caught. */
	unsigned char *copy = malloc(size ? size : 1);

	if (copy == NULL) {
		fprintf(stderr, "fuzz: out of memory\n");
		exit(1);
	}
	memcpy(copy, bytes, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static size_t make_input(unsigned char *to, uint64_t *random)
{
	size_t max = (size_t)options.max_len;
	size_t size = next_random(random) % (max + 1);

	if (corpus_count && next_random(random) % 8) {
		const struct file *file = &corpus[next_random(random) % corpus_count];

		size = file->size < max ? file->size : max;
		memcpy(to, file->bytes, size);
	} else {
		for (size_t i = 0; i < size; i++)
			to[i] = (unsigned char)next_random(random);
	}
	return size;
}

/* Values on which arithmetic breaks. */
static const uint64_t edges[] = {
	0,	    1,		0x7f,	    0x80,      0xff,
	0x7fffffff, 0x80000000, 0xffffffff, INT64_MAX, (uint64_t)INT64_MIN,
	UINT64_MAX
};

static size_t change_input(unsigned char *bytes, size_t size, uint64_t *random)
{
	size_t at = size ? next_random(random) % size : 0;
	size_t width = (size_t)1 << next_random(random) % 4;

	if (size == 0)
		return size;
	switch (next_random(random) % 5) {
	case 0:
		bytes[at] ^= (unsigned char)(1u << next_random(random) % 8);
		break;
	case 1:
		bytes[at] = (unsigned char)next_random(random);
		break;
	case 2:
		if (size - at >= width)
			memcpy(bytes + at, &edges[next_random(random) % ARRAY_LENGTH(edges)],
			       width);
		break;
	case 3:
		return at;
	case 4: {
		size_t from = next_random(random) % size;
		size_t length = next_random(random) % (size - (from > at ? from : at));

		memmove(bytes + at, bytes + from, length);
		break;
	}
	}
	return size;
}

static void run_number(int64_t number)
{
	static unsigned char input[INPUT_MAX];
	uint64_t random = hash_word((uint64_t)options.seed, (uint64_t)number);
	size_t size = make_input(input, &random);
	unsigned int changes = (unsigned int)(next_random(&random) % 8);

	for (unsigned int i = 0; i < changes; i++)
		size = change_input(input, size, &random);
	current = number;
	give(input, size);
}

static bool read_file(const char *path)
{
	struct file *file = &corpus[corpus_count];
	FILE *stream = fopen(path, "rb");

	if (stream == NULL || corpus_count == CORPUS_MAX)
		goto out;
	file->bytes = malloc(INPUT_MAX);
	if (file->bytes == NULL)
		goto out;
	file->size = fread(file->bytes, 1, INPUT_MAX, stream);
	corpus_count++;
	fclose(stream);
	return true;
out:
	if (stream)
		fclose(stream);
	fprintf(stderr, "fuzz: cannot take %s\n", path);
	return false;
}

static bool read_path(const char *path)
{
	struct dirent **entries;
	struct stat st;
	bool is_good = true;
	int count;

	if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
		return read_file(path);
	count = scandir(path, &entries, NULL, alphasort);
	if (count < 0) {
		fprintf(stderr, "fuzz: cannot read %s\n", path);
		return false;
	}
	for (int i = 0; i < count; i++) {
		char inside[4096];

		if (entries[i]->d_name[0] != '.' &&
		    text_format(inside, sizeof(inside), "%s/%s", path, entries[i]->d_name))
			is_good = read_file(inside) && is_good;
		free(entries[i]);
	}
	free(entries);
	return is_good;
}

static bool read_option(const char *argument)
{
	const struct {
		const char *name;
		int64_t *value;
		int64_t most;
	} known[] = {
		{ "-seconds=", &options.seconds, INT32_MAX },
		{ "-runs=", &options.runs, INT64_MAX },
		{ "-seed=", &options.seed, INT64_MAX },
		{ "-start=", &options.start, INT64_MAX / 2 },
		{ "-max_len=", &options.max_len, INPUT_MAX },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(known); i++) {
		size_t length = strlen(known[i].name);

		if (strncmp(argument, known[i].name, length) == 0 &&
		    text_number(argument + length, 0, known[i].most, known[i].value) == OK)
			return true;
	}
	fprintf(stderr, "fuzz: not understood: %s\n", argument);
	return false;
}

int main(int argc, char **argv)
{
	uint64_t begin = clock_system_ns(CLOCK_MONOTONIC);
	int64_t number;

	for (int i = 1; i < argc; i++) {
		if (argv[i][0] == '-' ? !read_option(argv[i]) : !read_path(argv[i]))
			return 2;
	}
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(say_where);

	for (size_t i = 0; i < corpus_count; i++)
		give(corpus[i].bytes, corpus[i].size);
	for (number = options.start;; number++) {
		uint64_t passed = clock_system_ns(CLOCK_MONOTONIC) - begin;

		if (number - options.start >= options.runs &&
		    passed >= (uint64_t)options.seconds * 1000000000u)
			break;
		run_number(number);
	}
	fprintf(stderr, "fuzz: %zu files, %lld inputs\n", corpus_count,
		(long long)(number - options.start));
	return 0;
}
