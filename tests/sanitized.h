/* sanitized.h - whether a sanitizer watches: it has a malloc of its own, keeps what was
 * freed, and takes many times as long. */
#ifndef VT_TESTS_SANITIZED_H
#define VT_TESTS_SANITIZED_H

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||       \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#endif
