/* JSON from standard input, a text a line, through the scanner and out again: what it understood. A
 * line that it refuses becomes "refused". For json.t, which compares with another reader. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/json_scan.h"

static void put_string(const struct json_scan *scan)
{
	char *text = malloc(scan->length + 8);

	if (!json_scan_text(scan, text, scan->length + 8))
		abort();
	putchar('"');
	for (const char *at = text; *at != '\0'; at++) {
		if ((unsigned char)*at < 0x20 || *at == '"' || *at == '\\')
			printf("\\u%04x", (unsigned char)*at);
		else
			putchar(*at);
	}
	putchar('"');
	free(text);
}

/* Integers by their value, so that it is compared, too. */
static void put_number(const struct json_scan *scan)
{
	uint64_t number;
	int64_t with_sign;

	if (json_scan_unsigned(scan, &number))
		printf("%llu", (unsigned long long)number);
	else if (json_scan_signed(scan, &with_sign))
		printf("%lld", (long long)with_sign);
	else
		printf("%.*s", (int)scan->length, scan->text);
}

static void put_token(const struct json_scan *scan)
{
	static const char *const plain[] = {
		[JSON_SCAN_OBJECT] = "{",  [JSON_SCAN_OBJECT_END] = "}",
		[JSON_SCAN_ARRAY] = "[",   [JSON_SCAN_ARRAY_END] = "]",
		[JSON_SCAN_TRUE] = "true", [JSON_SCAN_FALSE] = "false",
		[JSON_SCAN_NULL] = "null"
	};

	if (scan->token == JSON_SCAN_STRING || scan->token == JSON_SCAN_KEY)
		put_string(scan);
	else if (scan->token == JSON_SCAN_NUMBER)
		put_number(scan);
	else
		fputs(plain[scan->token], stdout);
}

static bool is_fine(const char *line, size_t length)
{
	struct json_scan scan;
	enum json_scan_token token;

	json_scan_init(&scan, line, length);
	while ((token = json_scan_next(&scan)) > JSON_SCAN_END)
		;
	return token == JSON_SCAN_END;
}

static void put_line(const char *line, size_t length)
{
	struct json_scan scan;
	int before = JSON_SCAN_OBJECT;

	json_scan_init(&scan, line, length);
	while (json_scan_next(&scan) > JSON_SCAN_END) {
		if (before == JSON_SCAN_KEY)
			putchar(':');
		else if (before != JSON_SCAN_OBJECT && before != JSON_SCAN_ARRAY &&
			 scan.token != JSON_SCAN_OBJECT_END && scan.token != JSON_SCAN_ARRAY_END)
			putchar(',');
		put_token(&scan);
		before = scan.token;
	}
	putchar('\n');
}

int main(void)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t length;

	while ((length = getline(&line, &room, stdin)) > 0) {
		length -= line[length - 1] == '\n';
		if (is_fine(line, (size_t)length))
			put_line(line, (size_t)length);
		else
			puts("refused");
	}
	free(line);
	return 0;
}
