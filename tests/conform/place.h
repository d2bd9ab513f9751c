/* place.h - the files beside a manifest that tests of goldens share. */
#ifndef VT_TESTS_CONFORM_PLACE_H
#define VT_TESTS_CONFORM_PLACE_H

#include "../place.h"
#include "conform/golden.h"

#define COMPAT                                                       \
    "[[vllm]]\nline = \"0.26\"\ntag = \"v0.26.0\"\ndefault = true\n" \
    "fidelity_validated = true\n"                                    \
    "[[vllm]]\nline = \"0.32\"\ntag = \"v0.32.0\"\n"                 \
    "fidelity_validated = false\n"                                   \
    "[[vllm]]\nline = \"nightly\"\ntag = \"nightly\"\n"              \
    "fidelity_validated = false\n"
#define MODELS                                    \
    "[[model]]\nname = \"m\"\nvocab_size = 100\n" \
    "max_model_len = 64\ndirectory = \"here\"\n"
#define HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

#endif
