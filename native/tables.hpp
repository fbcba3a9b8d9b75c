// Tables of sixteen for the elementary functions: two registers of AVX-512, which reads them without touching memory.
// tests/kernels/test_elementary.py computes every entry from its definition.
#pragma once

namespace STRIKEOUT_BUILD {
namespace elementary {

// 2^(j / 16) rounded, with j 2^48 taken from its bits; and what it is short of, relative to itself.
alignas(64) constexpr double ROOT[16] = {
    1.0, 0x1.fb5586cf9890fp-1, 0x1.f72b83c7d517bp-1, 0x1.f387a6e756238p-1,
    0x1.f06fe0a31b715p-1, 0x1.edea64c123422p-1, 0x1.ebfdad5362a27p-1, 0x1.eab07dd485429p-1,
    0x1.ea09e667f3bcdp-1, 0x1.ea11473eb0187p-1, 0x1.eace5422aa0dbp-1, 0x1.ec49182a3f090p-1,
    0x1.ee89f995ad3adp-1, 0x1.f199bdd85529cp-1, 0x1.f5818dcfba487p-1, 0x1.fa4afa2a490dap-1};
alignas(64) constexpr double ROOT_REST[16] = {
    0.0, 0x1.79aa65d837b6dp-54, -0x1.01b15eaa59348p-55, 0x1.68efde3a8a894p-54,
    0x1.34d754db0abb6p-55, 0x1.59f48a72a4c6dp-55, 0x1.690cebb7aafb0p-56, 0x1.063e1e21c5409p-54,
    -0x1.3b3efbf5e2228p-54, -0x1.b32dcb94da51dp-56, 0x1.db72fc1f0eab4p-55, 0x1.1affc2b91ce27p-56,
    0x1.c1a7792cb3387p-55, 0x1.36eae30af0cb3p-56, 0x1.4a385a63d07a7p-56, -0x1.ff7128fd391f0p-55};

// Fractions from 0.703125 to 1.40625 in sixteen cells of equal steps of their bits: c near the reciprocal of a cell, of so few
// digits that c m - 1 is exact for every m in it and at most 0.0342; -ln c to 42 digits after the point, and the rest.
alignas(64) constexpr double RECIPROCAL[16] = {
    1.375, 1.34375, 1.28125, 1.21875,
    1.1875, 1.15625, 1.09375, 1.0625,
    1.03125, 1.0, 0.9375, 0.890625,
    0.84375, 0.796875, 0.765625, 0.71875};
alignas(64) constexpr double LOG_HIGH[16] = {
    -0x1.4618bc21c6000p-2, -0x1.2e8e2bae12000p-2, -0x1.fb9186d5e4000p-3, -0x1.9525a9cf46000p-3,
    -0x1.5ff3070a7a000p-3, -0x1.29552f8200000p-3, -0x1.6f0d28ae58000p-4, -0x1.f0a30c0118000p-5,
    -0x1.f829b0e780000p-6, 0.0, 0x1.08598b59e4000p-4, 0x1.da72763844000p-4,
    0x1.5bf406b544000p-3, 0x1.d1037f2656000p-3, 0x1.1178e8227e000p-2, 0x1.522ae0738a000p-2};
alignas(64) constexpr double LOG_LOW[16] = {
    0x1.3d82f484c84ccp-46, 0x1.67b1e99b72bd8p-45, 0x1.d572aab993c87p-47, 0x1.297137d9f158fp-44,
    0x1.8586f183bebf2p-44, 0x1.5b967f4471dfcp-44, 0x1.4b4641b664613p-44, 0x1.d599e83368e91p-45,
    -0x1.980267c7e09e4p-45, 0.0, -0x1.7e5dd7009902cp-46, 0x1.a89401fa71733p-46,
    -0x1.27023eb68981cp-46, -0x1.84a7e75b6f6e4p-47, 0x1.1ef78ce2d07f2p-44, 0x1.ebe708164c759p-45};

}  // namespace elementary
}  // namespace STRIKEOUT_BUILD
