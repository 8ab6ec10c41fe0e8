/*
 * curl_multi_poll() of libcurl 7.66 with what libcurl 7.61 has (RHEL 8), for ringside-fetch: see floor.c.
 */
#include <curl/curl.h>
#include <poll.h>
#include <time.h>

#undef curl_multi_poll

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

CURLMcode curl_multi_poll(CURLM *multi, struct curl_waitfd *others, unsigned int count,
			  int timeout_ms, int *ready)
{
	enum { NAP_MS = 10 };
	int nap = timeout_ms < NAP_MS ? timeout_ms : NAP_MS, some = 0;
	long begin = now_ms();
	CURLMcode code = curl_multi_wait(multi, others, count, timeout_ms, &some);

	/* While a name is looked up there is nothing to wait for, and it returns at once. */
	if (code == CURLM_OK && some == 0 && now_ms() - begin < nap)
		poll(NULL, 0, nap);
	if (ready)
		*ready = some;
	return code;
}
