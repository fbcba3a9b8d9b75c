// Which build of the kernel runs: decided when the module is loaded.
#pragma once

extern bool use_avx2;
#if defined(STRIKEOUT_AVX2)
#define DISPATCH(function) (use_avx2 ? avx2::function : plain::function)
#else
#define DISPATCH(function) plain::function
#endif
