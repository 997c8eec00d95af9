// Part of every executable of the asan preset. A report must not look like an answer: 1 is a verdict and 2, 3
// and 130 have a meaning too, so that a test that expects one of them would take a report for it.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "exitcode=86"; }
extern "C" const char* __ubsan_default_options();
extern "C" const char* __ubsan_default_options() { return "print_stacktrace=1:exitcode=86"; }
