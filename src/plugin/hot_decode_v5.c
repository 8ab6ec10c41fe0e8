#define ABI_VERSION 5
#include "plugin/abi_v5.h"
#include "plugin/decode.inc"
