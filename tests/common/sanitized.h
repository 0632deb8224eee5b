/* sanitized: CONSAN_ASAN is defined in a build with AddressSanitizer, by gcc and by clang. Header-only. */
#ifndef CONSAN_TESTS_SANITIZED_H
#define CONSAN_TESTS_SANITIZED_H

#ifdef __SANITIZE_ADDRESS__
#define CONSAN_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CONSAN_ASAN
#endif
#endif

#endif
