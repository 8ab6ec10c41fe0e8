/* A key and its value in one call: no more than that. */
#include "view/json.h"

void json_put_string(struct json *json, const char *key, const char *text)
{
	json_key(json, key);
	json_string(json, text);
}

void json_put_unsigned(struct json *json, const char *key, uint64_t number)
{
	json_key(json, key);
	json_unsigned(json, number);
}

void json_put_signed(struct json *json, const char *key, int64_t number)
{
	json_key(json, key);
	json_signed(json, number);
}

void json_put_double(struct json *json, const char *key, double number)
{
	json_key(json, key);
	json_double(json, number);
}

void json_put_bool(struct json *json, const char *key, bool is_true)
{
	json_key(json, key);
	json_bool(json, is_true);
}

void json_put_null(struct json *json, const char *key)
{
	json_key(json, key);
	json_null(json);
}

void json_put_hex(struct json *json, const char *key, uint64_t number)
{
	json_key(json, key);
	json_hex(json, number);
}

void json_put_object(struct json *json, const char *key)
{
	json_key(json, key);
	json_object(json);
}

void json_put_array(struct json *json, const char *key)
{
	json_key(json, key);
	json_array(json);
}
