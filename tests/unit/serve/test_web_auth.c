#include <string.h>

#include "serve/web.h"
#include "common/attributes.h"
#include "tests/tap.h"

static const uint8_t here[16] = { 1 }, there[16] = { 2 }, elsewhere[16] = { 3 };

static void test_decode(void)
{
	char pair[WEB_AUTH_TEXT];
	char many[1024] = "Basic ";

	EXPECT_THAT("a pair with one sign of padding",
		    web_auth_decode("Basic YWxpY2U6c2VjcmV0cw==", pair) &&
			    strcmp(pair, "alice:secrets") == 0);
	EXPECT_THAT("any letter case, without padding",
		    web_auth_decode("bAsIc  YTpi", pair) && strcmp(pair, "a:b") == 0);
	EXPECT_THAT("an empty password",
		    web_auth_decode("Basic YTo=", pair) && strcmp(pair, "a:") == 0);
	EXPECT_THAT("another scheme", !web_auth_decode("Bearer YTpi", pair));
	EXPECT_THAT("no colon", !web_auth_decode("Basic YWI=", pair));
	EXPECT_THAT("a stray letter", !web_auth_decode("Basic YTpi!", pair));
	EXPECT_THAT("letters after the padding", !web_auth_decode("Basic YTo=YTo=", pair));
	EXPECT_THAT("too much padding", !web_auth_decode("Basic YTpi====", pair));
	EXPECT_THAT("incomplete bits", !web_auth_decode("Basic YTp", pair));
	EXPECT_THAT("a zero byte", !web_auth_decode("Basic YToAYg==", pair));
	EXPECT_THAT("nothing", !web_auth_decode("Basic ", pair) && !web_auth_decode("", pair));
	EXPECT_THAT("a letter that is all zeros",
		    web_auth_decode("Basic YTpAQA==", pair) && strcmp(pair, "a:@@") == 0);
	EXPECT_THAT("two bytes without padding",
		    web_auth_decode("Basic YTo", pair) && strcmp(pair, "a:") == 0);
	EXPECT_THAT("too little padding", !web_auth_decode("Basic YTpAQA=", pair));
	EXPECT_THAT("a letter that is no byte", !web_auth_decode("Basic YTpiA", pair));
	memset(many + 6, 'Y', sizeof(many) - 7);
	EXPECT_THAT("too long", !web_auth_decode(many, pair));
}

static void make_users(struct web_config *config, struct web_user *users, size_t count)
{
	memset(users, 0, sizeof(*users) * count);
	*config = (struct web_config){ .users = users, .user_count = count };
	for (size_t i = 0; i < count; i++)
		users[i].name[0] = (char)('a' + i);
}

/* "a:U*U", "c:U*U" and "a:wrong". */
static const char a_right[] = "Basic YTpVKlU=";
static const char c_right[] = "Basic YzpVKlU=";
static const char a_wrong[] = "Basic YTp3cm9uZw==";

/* All at once: the server does what takes time in a child. */
static enum web_verdict check(struct web_auth *auth, const struct web_config *config,
			      const char *header, const uint8_t address[static 16], bool is_turn,
			      uint64_t now)
{
	enum web_verdict verdict = web_auth_check(auth, config, header, is_turn, now);

	return verdict == WEB_AUTH_TURN
		       ? web_auth_end(auth, web_auth_compare(auth), address, 1, now - 1)
		       : verdict;
}

static void test_check(const char *hash, const char *other)
{
	struct web_config config;
	struct web_user users[2];
	struct web_auth auth;
	uint64_t now = UINT64_C(1) << 62;

	make_users(&config, users, 2);
	memcpy(users[0].hash, hash, strlen(hash));
	memcpy(users[1].hash, hash, strlen(hash));
	EXPECT(web_auth_init(&auth) == OK);
	EXPECT_THAT("no header is rejected without cost",
		    check(&auth, &config, NULL, here, true, now) == WEB_AUTH_WRONG &&
			    auth.checks == 0);
	EXPECT_THAT("the right password waits for its turn",
		    check(&auth, &config, a_right, here, false, now) == WEB_AUTH_LATER &&
			    auth.checks == 0);
	EXPECT_THAT("and is accepted",
		    check(&auth, &config, a_right, here, true, now) == WEB_AUTH_GOOD);
	EXPECT_EQUAL(auth.checks, 1);
	EXPECT_THAT("and cached: it has no turn to wait for",
		    check(&auth, &config, a_right, there, false, now) == WEB_AUTH_GOOD &&
			    auth.checks == 1);
	EXPECT_THAT("a wrong one is rejected",
		    check(&auth, &config, a_wrong, here, true, now) == WEB_AUTH_WRONG);
	EXPECT_THAT("its address is remembered for a second",
		    web_auth_was_wrong(&auth, here, now + 1) &&
			    !web_auth_was_wrong(&auth, there, now + 1) &&
			    !web_auth_was_wrong(&auth, here, now + 2000000000));
	EXPECT_THAT("but does not keep it out",
		    check(&auth, &config, a_wrong, here, true, now + 1) == WEB_AUTH_WRONG);
	EXPECT_EQUAL(auth.checks, 3);
	EXPECT_THAT("an unknown user costs the same",
		    check(&auth, &config, c_right, here, true, now + 2) == WEB_AUTH_WRONG &&
			    auth.checks == 4);
	/* bcrypt has just run, so its share of time is used up. */
	EXPECT_THAT("bcrypt is limited to a share of time",
		    check(&auth, &config, c_right, elsewhere, true, auth.free_ns - 1) ==
			    WEB_AUTH_LATER);
	EXPECT_THAT("the password is forgotten", auth.password[0] == '\0');
	memcpy(users[0].hash, other, strlen(other));
	EXPECT_THAT("a changed hash is not cached",
		    check(&auth, &config, a_right, here, true, now + 3) == WEB_AUTH_WRONG);
	web_auth_release(&auth);
}

/* Whose password is checked next? */
static void test_turns(void)
{
	/* They came in this order. */
	const struct web_turn guesser = { here, 3, 1 }, guess = { here, 0, 2 },
			      right = { here, 0, 3 }, other = { there, 0, 4 };
	static struct web_auth auth;

	EXPECT_THAT("who came first goes first",
		    web_auth_goes_before(&auth, &guess, &right, 100) &&
			    !web_auth_goes_before(&auth, &right, &guess, 100));
	EXPECT_THAT("but not on a connection with a wrong password",
		    web_auth_goes_before(&auth, &right, &guesser, 100) &&
			    !web_auth_goes_before(&auth, &guesser, &right, 100));
	memcpy(auth.wrong[0].address, here, 16);
	auth.wrong[0].until_ns = 200;
	EXPECT_THAT("nor before addresses that have not sent one",
		    web_auth_goes_before(&auth, &other, &guess, 100) &&
			    !web_auth_goes_before(&auth, &guess, &other, 100));
	EXPECT_THAT("for a second", web_auth_goes_before(&auth, &guess, &other, 200));
}

/* The last 64 of each are remembered. */
static void test_rings(const char *hash)
{
	static const char b_right[] = "Basic YjpVKlU=";
	const struct web_config nobody = { .user_count = 0 };
	struct web_config config;
	struct web_user users[2];
	struct web_auth auth;
	uint64_t now = 1000;

	make_users(&config, users, 2);
	memcpy(users[0].hash, hash, strlen(hash));
	memcpy(users[1].hash, hash, strlen(hash));
	EXPECT(web_auth_init(&auth) == OK);
	auth.digest[0] = 1;
	EXPECT(web_auth_end(&auth, true, here, 10, now) == WEB_AUTH_GOOD);
	EXPECT_THAT("half of the time is for others", auth.free_ns == now + 10);
	EXPECT_THAT("the second user",
		    check(&auth, &config, b_right, here, true, now + 10) == WEB_AUTH_GOOD);
	EXPECT_THAT("is remembered beside the first",
		    auth.next_good == 2 &&
			    check(&auth, &config, b_right, here, false, now + 10) == WEB_AUTH_GOOD);
	EXPECT_THAT("without users nobody is right",
		    check(&auth, &nobody, b_right, here, true, now + 100) == WEB_AUTH_WRONG);
	for (int i = 3; i <= WEB_AUTH_REMEMBERED; i++) {
		memset(auth.digest, i, sizeof(auth.digest));
		web_auth_end(&auth, true, here, 1, now);
	}
	EXPECT(auth.next_good == 0 && auth.good[WEB_AUTH_REMEMBERED - 1][5] == WEB_AUTH_REMEMBERED);
	memset(auth.digest, 99, sizeof(auth.digest));
	web_auth_end(&auth, true, here, 1, now);
	EXPECT(auth.next_good == 1 && auth.good[0][5] == 99 && auth.good[2][5] == 3);
	for (int i = 0; i <= WEB_AUTH_ADDRESSES; i++) {
		const uint8_t address[16] = { 7, (uint8_t)i };

		EXPECT_EQUAL(web_auth_end(&auth, false, address, 1, now), WEB_AUTH_WRONG);
		EXPECT_EQUAL(auth.next_wrong, (i + 1) % WEB_AUTH_ADDRESSES);
	}
	EXPECT_THAT("of 65 addresses the first is forgotten",
		    !web_auth_was_wrong(&auth, (const uint8_t[16]){ 7, 0 }, now) &&
			    web_auth_was_wrong(&auth, (const uint8_t[16]){ 7, 1 }, now) &&
			    web_auth_was_wrong(&auth, (const uint8_t[16]){ 7, 63 }, now) &&
			    web_auth_was_wrong(&auth, (const uint8_t[16]){ 7, 64 }, now));
	web_auth_release(&auth);
}

static void test_memory(const char *hash)
{
	static struct web_user users[26];
	struct web_config config;
	struct web_auth auth;
	uint64_t now = UINT64_C(1) << 62;

	make_users(&config, users, 1);
	memcpy(users[0].hash, hash, strlen(hash));
	EXPECT(web_auth_init(&auth) == OK);
	for (int i = 0; i < WEB_AUTH_ADDRESSES + 3; i++) {
		uint8_t address[16] = { 4, (uint8_t)i };

		if (check(&auth, &config, a_wrong, address, true, now) != WEB_AUTH_WRONG)
			break;
		if (i == WEB_AUTH_ADDRESSES + 2)
			EXPECT_THAT("more addresses than slots", 1);
	}
	web_auth_release(&auth);
	EXPECT_THAT("secrets are erased", auth.crypt == NULL && auth.secret[0] == 0);
}

int main(void)
{
	/* Hashes of "U*U" and "U*U*", as published by the author of bcrypt. */
	static const char hash[] = "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW";
	static const char other[] = "$2a$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK";

	_Static_assert(sizeof(hash) == 61 && sizeof(other) == 61, "hashes of bcrypt");
	test_decode();
	test_check(hash, other);
	test_rings(hash);
	test_memory(hash);
	test_turns();
	return tap_done();
}
