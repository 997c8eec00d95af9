// The vocabulary of PTX (PTX ISA 9.x, sections 5 "State Spaces, Types, and Variables" and 9 "Instruction
// Set").
#pragma once

#include <cstdint>
#include <string_view>

namespace echolo::ptx {

enum class Type : std::uint8_t {
  kNone,
  kPred,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kF16,
  kF16x2,
  kBf16,
  kBf16x2,
  kTf32,
  kF32,
  kF32x2,
  kF64,
  kU16x2,
  kS16x2,
  kB1,
  kU4,
  kS4,
  kE4m3,
  kE5m2,
  kE4m3x2,
  kE5m2x2,
  kE2m3x2,
  kE3m2x2,
  kE2m1x2,
  kUe8m0x2,
};
int bits_of(Type type);               // 32 for kU32; 1 for kPred
int bytes_of(Type type);              // rounded up to whole bytes
bool is_float(Type type);             // any floating type, packed ones too
bool is_signed(Type type);            // kS*
std::string_view name_of(Type type);  // "u32", "bf16x2", ...

enum class Space : std::uint8_t {
  kGeneric,  // no space given
  kReg,
  kGlobal,
  kConst,
  kLocal,
  kParam,
  kShared,
  kSharedCluster,
  kTexture,
};
enum class Order : std::uint8_t { kWeak, kVolatile, kRelaxed, kAcquire, kRelease, kAcqRel, kSc, kMmio };
enum class Scope : std::uint8_t { kNone, kCta, kCluster, kGpu, kSys };
enum class Rounding : std::uint8_t { kDefault, kRn, kRz, kRm, kRp, kRna, kRni, kRzi, kRmi, kRpi, kRs };
enum class Compare : std::uint8_t {
  kNone,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kLo,
  kLs,
  kHi,
  kHs,
  kEqu,
  kNeu,
  kLtu,
  kLeu,
  kGtu,
  kGeu,
  kNum,
  kNan,
};
enum class BoolOp : std::uint8_t { kNone, kAnd, kOr, kXor };
enum class MulMode : std::uint8_t { kNone, kLo, kHi, kWide };
// The operation of atom, red, redux, vote, shfl, barrier.red and the like.
enum class SubOp : std::uint8_t {
  kNone,
  kAdd,
  kMin,
  kMax,
  kAnd,
  kOr,
  kXor,
  kInc,
  kDec,
  kExch,
  kCas,
  kPopc,
  kAll,
  kAny,
  kUni,
  kBallot,
  kUp,
  kDown,
  kBfly,
  kIdx,
  kSync,
  kArrive,
  kRed,
  kTo,
  kWait,
  kInit,
  kInval,
  kTryWait,
  kTestWait,
  kExpectTx,
  kCompleteTx,
  kCommitGroup,
  kWaitGroup,
  kWaitAll,
  kWrap,
  kClamp,
  kShiftL,
  kShiftR,
  kZero,
  kFtzNoinc,
  kMbarrierArrive,
  kBulk,
  kTensor,
  kProxy,
  kFence,
  kGetPos,
  kArriveDrop,
  kPendingCount,
};

}  // namespace echolo::ptx
