// Which build of the kernel runs: decided when the module is loaded.
//
// The pricing kernel has two builds, the functions over arrays have a third: compiled for AVX-512 with the same four lanes the
// pricing kernel gains 1 to 2 % of a pass, the functions over arrays with eight lanes take half the time.
#pragma once

enum class Instructions { plain, avx2, avx512 };
extern Instructions instructions;
#if defined(STRIKEOUT_X86)
#define DISPATCH(function) (instructions == Instructions::plain ? plain::function : avx2::function)
#define DISPATCH_ARRAYS(function) (instructions == Instructions::avx512 ? avx512::function : DISPATCH(function))
#else
#define DISPATCH(function) plain::function
#define DISPATCH_ARRAYS(function) plain::function
#endif
