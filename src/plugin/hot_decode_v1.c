#define ABI_VERSION 1
#include "plugin/abi_v1.h"
#include "plugin/decode.inc"
