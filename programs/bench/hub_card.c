#include "programs/bench/hub_card.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/text.h"

enum { TOKEN_DIGITS = 16 };

static enum status parse_port(const char *text, size_t length, int *port)
{
	char digits[8];
	int64_t number;

	if (length == 0 || length >= sizeof(digits))
		return ERR_FORMAT;
	memcpy(digits, text, length);
	digits[length] = '\0';
	if (text_number(digits, 1, 65535, &number) != OK)
		return ERR_FORMAT;
	*port = (int)number;
	return OK;
}

enum status hub_card_address(const char *text, size_t length, char host[static HUB_CARD_HOST],
			     int *port)
{
	const char *colon = memrchr(text, ':', length);
	size_t host_length = colon ? (size_t)(colon - text) : 0;
	const char *begin = text;

	if (host_length == 0 || parse_port(colon + 1, length - host_length - 1, port) != OK)
		return ERR_FORMAT;
	if (text[0] == '[' && text[host_length - 1] == ']') {
		begin++;
		host_length -= 2;
	} else if (memchr(text, ':', host_length) != NULL) {
		return ERR_FORMAT;
	}
	if (host_length == 0 || host_length >= HUB_CARD_HOST)
		return ERR_FORMAT;
	for (size_t i = 0; i < host_length; i++)
		if ((unsigned char)begin[i] <= ' ' || begin[i] == '/' || begin[i] == 0x7f)
			return ERR_FORMAT;
	memcpy(host, begin, host_length);
	host[host_length] = '\0';
	return OK;
}

static enum status parse_token(const char *text, size_t length, uint64_t *token)
{
	char digits[TOKEN_DIGITS + 1];

	if (length != TOKEN_DIGITS || strspn(text, "0123456789abcdef") < TOKEN_DIGITS)
		return ERR_FORMAT;
	memcpy(digits, text, length);
	digits[length] = '\0';
	*token = strtoull(digits, NULL, 16);
	return OK;
}

static enum status parse_line(struct hub_card *card, const char *line, size_t length)
{
	const char *blank = memchr(line, ' ', length);
	uint64_t token;
	int port;

	if (blank == NULL || card->count == HUB_CARD_ADDRESSES ||
	    hub_card_address(line, (size_t)(blank - line), card->hosts[card->count], &port) != OK ||
	    parse_token(blank + 1, length - (size_t)(blank - line) - 1, &token) != OK)
		return ERR_FORMAT;
	if (card->count > 0 && (token != card->token || port != card->port))
		return ERR_FORMAT;
	card->token = token;
	card->port = port;
	card->count++;
	return OK;
}

enum status hub_card_parse(struct hub_card *card, const char *text, size_t length)
{
	char copy[HUB_CARD_BYTES];
	char *at = copy;

	*card = (struct hub_card){ 0 };
	if (length == 0 || length >= sizeof(copy) || memchr(text, '\0', length) != NULL)
		return ERR_FORMAT;
	memcpy(copy, text, length);
	copy[length] = '\0';
	while (*at != '\0') {
		char *end = strchr(at, '\n');

		if (end == NULL || parse_line(card, at, (size_t)(end - at)) != OK)
			return ERR_FORMAT;
		at = end + 1;
	}
	return OK;
}

static size_t card_text(const struct hub_card *card, char *text, size_t size)
{
	size_t at = 0;

	for (size_t i = 0; i < card->count && at < size; i++) {
		bool is_bare = strchr(card->hosts[i], ':') == NULL;

		snprintf(text + at, size - at, "%s%s%s:%d %016" PRIx64 "\n", is_bare ? "" : "[",
			 card->hosts[i], is_bare ? "" : "]", card->port, card->token);
		at += strlen(text + at);
	}
	return at;
}

enum status hub_card_write(const struct hub_card *card, const char *path)
{
	char text[HUB_CARD_BYTES], temporary[PATH_MAX];
	size_t length = card_text(card, text, sizeof(text));
	int fd, error;
	bool is_fine;

	if (!text_format(temporary, sizeof(temporary), "%s.%ld.part", path, (long)getpid())) {
		errno = ENAMETOOLONG;
		return ERR_SYSTEM;
	}
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd == -1)
		return ERR_SYSTEM;
	is_fine = write(fd, text, length) == (ssize_t)length;
	error = errno;
	if (close(fd) == -1 && is_fine) {
		is_fine = false;
		error = errno;
	}
	if (is_fine && rename(temporary, path) == 0)
		return OK;
	if (is_fine)
		error = errno;
	unlink(temporary);
	errno = error;
	return ERR_SYSTEM;
}

enum status hub_card_read(struct hub_card *card, const char *path)
{
	char text[HUB_CARD_BYTES];
	struct stat st;
	ssize_t got;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	int error;

	if (fd == -1)
		return ERR_SYSTEM;
	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_size >= HUB_CARD_BYTES) {
		close(fd);
		return ERR_RANGE;
	}
	got = read(fd, text, sizeof(text));
	error = errno;
	close(fd);
	errno = error;
	if (got < 0)
		return ERR_SYSTEM;
	return hub_card_parse(card, text, (size_t)got);
}
