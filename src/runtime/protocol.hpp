// What a PE process and the node say to each other. Every host thread of a PE has a stream socket of its own
// to the node; on it, one request is followed by one reply (notes have none). The node trusts nothing that
// arrives here: a request that does not parse ends that PE, never the node.
//
// Request: RequestHeader, then `bytes` of payload. Reply: ReplyHeader, then `bytes` of payload. Payloads are
// written with Writer and read with Reader, field by field in the order that the comment at the operation
// gives. New threads are announced on the PE's control socket (kControlFdVariable): one byte together with
// their socket.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace echolo::runtime::wire {

inline constexpr std::uint32_t kMagic = 0x4c4f4845U;  // "EHOL"
inline constexpr std::uint16_t kVersion = 1;
inline constexpr std::uint32_t kMaxPayload = 64U << 20U;
inline constexpr std::uint64_t kChunk =
    16U << 20U;  // copies to and from pageable memory travel in pieces of this
inline constexpr int kMaxFrames = 4;
inline constexpr const char* kControlFdVariable = "ECHOLO_CONTROL_FD";
inline constexpr std::uint32_t kMaxTensors = 64;

enum class Op : std::uint16_t {
  kHello,  // u32 process, u32 thread -> Hello (and, on a PE's first connection, the memfd of its pinned
           // memory)
  // ---- notes: no reply ----
  kNoteModule,       // u64 load base, str path: gets the next module number of this PE, 1 first
  kNoteCrash,        // u32 signal, u64 fault address, u8 arena: the process ends now
  kNoteExit,         // i32 code: exit() was called
  kNoteException,    // str what: an exception left the candidate's function
  kNoteFailure,      // str: a candidate's function left an error behind ("cudaErrorInvalidValue: ...")
  kNoteUnsupported,  // str: why a call returned cudaErrorNotSupported
  kNoteEnd,          // echolo-pe, or a program's exit handler: this PE ended as it should
  // ---- modules and kernels ----
  kLoadModule,     // str name, blob ptx -> u32 module
  kUnloadModule,   // u32 module; waits for the device first
  kKernelNames,    // u32 module -> u32 n, n x str
  kKernelInfo,     // u32 module, str kernel -> KernelInfo fields (see node/calls_launch.cpp)
  kVariable,       // u32 module, str name -> u64 address, u64 size
  kFunctionLimit,  // u32 module, str kernel, u64 dynamic shared memory allowed
  kOccupancy,      // u32 module, str kernel, u32 threads, u64 dynamic shared -> u32 blocks an SM
  kLaunch,         // u32 module, str kernel, 6 x u32 grid and block, u64 shared, u64 stream, u8 cooperative,
                   // 3 x u32 cluster (zeros: none asked for), blob parameters
  // ---- memory ----
  kAllocate,     // u8 AllocationClass, u64 bytes, u64 pool (kAsync: 1 is the default one) -> u64 address
  kFree,         // u8 AllocationClass, u64 address
  kFreeAsync,    // u64 address, u64 stream
  kMemoryInfo,   // -> u64 free, u64 total
  kPointerInfo,  // u64 address -> u8 AllocationClass (kPageable: unknown), u64 base, u64 size
  kCopy,         // CopyRequest fields (see pe/copies.cpp) -> blob: what to store at a pageable destination
  kFill,         // u64 address, u32 value, u8 bytes of an element, u64 pitch, u64 elements a row, u64 rows,
                 // u64 stream, u8 wait
  kPool,         // u8 PoolCall, u64 pool, u64 attribute, u64 value -> u64 (see node/calls_pool.cpp)
  kVirtual,      // u8 VirtualCall, u64 address, u64 size, u64 third -> u64 (see node/calls_virtual.cpp)
  kIpcMemory,    // u8 IpcCall, u64 address, u64 serial -> kGet: u64 base, u64 serial; kOpen: u64 address
  kIpcEvent,     // u8 IpcCall, u64 PE, u64 event -> kOpen: u64 event
  // ---- streams and events ----
  kStreamCreate,     // u32 flags, i32 priority -> u64
  kStreamDestroy,    // u64
  kStreamSync,       // u64
  kStreamQuery,      // u64
  kStreamWaitEvent,  // u64 stream, u64 event, u64 1: as an external node of a graph under capture
  kStreamInfo,       // u64 -> u32 flags, i32 priority, u64 id
  kStreamWord,       // u64 stream, u64 address, u64 value, u8 bytes (4, 8), u8 write, u8 comparison (as
                     // CUstreamWaitValue_flags), u8 orders: a wait for a word of memory, or a write to one
  kHostFunction,     // u64 stream, u64 function, u64 data, u8 callback form
  kService,          // u8 state (0 first), blob result -> u8 ServiceKind, u64 a, u64 b, u64 c, blob
  kDeviceSync,
  kEventCreate,   // u32 flags -> u64
  kEventDestroy,  // u64
  kEventRecord,   // u64 event, u64 stream, u64 1: as an external node of a graph under capture
  kEventSync,     // u64
  kEventQuery,    // u64
  kEventElapsed,  // u64 start, u64 end -> u64 nanoseconds (modelled)
  // ---- graphs ----
  kCaptureBegin,      // u64 stream, u32 mode
  kCaptureEnd,        // u64 stream -> u64 graph
  kCaptureInfo,       // u64 stream -> u32 status, u64 id, u64 graph, u32 n, n x u64 nodes that come before
  kCaptureDepend,     // u64 stream, u8 replace, u32 n, n x u64 nodes
  kCaptureMode,       // u32 mode -> u32 previous
  kGraphInstantiate,  // u64 graph -> u64
  kGraphLaunch,       // u64 executable graph, u64 stream
  kGraphDestroy,      // u64
  kGraphExecDestroy,  // u64
  // A node's request is what the operation itself would send (kLaunch, kCopy, kFill, kHostFunction); its
  // object the event or the child graph of nodes that have one.
  kGraphCreate,       // -> u64
  kGraphClone,        // u64 -> u64
  kGraphAddNode,      // u64 graph, u32 n, n x u64 nodes before it, u8 cudaGraphNodeType, u64 object, u16 Op,
                      // blob request -> u64
  kGraphSetNode,      // u64 executable graph (0: in its graph), u64 node, u8 type, u64 object, u16 Op, blob
  kGraphDestroyNode,  // u64
  kGraphNodes,        // u64 graph, u8 roots only -> u32 n, n x u64
  kGraphEdges,        // u64 graph -> u32 n, n x (u64 from, u64 to)
  kGraphNodeInfo,  // u64 node -> u64 graph, u8 type, u64 object, u16 Op, blob request, u32 n, n x u64 nodes
                   // before it, u32 n, n x u64 nodes after it
  kGraphDepend,    // u64 graph, u8 remove, u32 n, n x (u64 from, u64 to)
  kGraphFindInClone,  // u64 node, u64 clone -> u64
  kGraphUpdate,       // u64 executable graph, u64 graph -> u8 cudaGraphExecUpdateResult, u64 node
  kGraphEnable,       // u64 executable graph, u64 node, u8 (0 off, 1 on, 2 ask) -> u8
  // ---- NVSHMEM ----
  kShmemInit,
  kShmemFinalize,  // waits for every PE, as nvshmem_finalize does
  kShmemCall,  // u8 on stream, u64 stream, u32 n, n x u64: what shmem::Fabric::host_call takes -> u64 result
  // ---- the judge's candidates (echolo-pe) ----
  kNextCommand,  // u64 stream -> Command fields (see node/candidate_driver.cpp)
  kCount
};

enum class AllocationClass : std::uint8_t { kPageable, kDevice, kPinned, kManaged, kAsync };
enum class PoolCall : std::uint8_t { kCreate, kDestroy, kGet, kSet, kTrim };
enum class VirtualCall : std::uint8_t {
  kReserve,    // size, alignment
  kUnreserve,  // address, size
  kCreate,     // size -> handle
  kRelease,    // handle as address
  kMap,        // address, size, handle
  kUnmap,      // address, size
  kAccess,     // address, size, 1: read and write, 0: none
  kAccessOf,   // address -> as above
  kHandleOf,   // address -> handle, retained
  kSizeOf      // handle as address -> size
};
enum class IpcCall : std::uint8_t { kGet, kOpen, kClose };
enum class ServiceKind : std::uint8_t { kFunction, kCallback, kReadHost, kWriteHost };
enum class CommandKind : std::uint8_t { kCreate, kRun, kCapture, kReplay, kDestroy, kExit };

// A return address of host code: the module's number on this PE (0: none known) and the offset from its load
// base.
struct Frame {
  std::uint32_t module = 0;
  std::uint32_t reserved = 0;
  std::uint64_t offset = 0;
};

struct RequestHeader {
  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  std::uint16_t op = 0;
  std::uint32_t bytes = 0;
  std::uint32_t reserved = 0;
  char name[48] = {};        // of the API function, zero-terminated: "cudaMemcpyAsync"
  Frame frames[kMaxFrames];  // who called it, innermost first
};
static_assert(sizeof(RequestHeader) == 64 + sizeof(Frame) * kMaxFrames);

struct ReplyHeader {
  std::uint32_t magic = kMagic;
  std::int32_t error = 0;  // a cudaError_t
  std::uint32_t bytes = 0;
  std::uint32_t flags = 0;  // kStartService
};
inline constexpr std::uint32_t kStartService = 1;  // the PE needs its service thread from now on

// What the node tells a new connection.
struct Hello {
  std::int32_t pe = 0, n_pes = 1;
  std::uint64_t device_bytes = 0;
  std::int32_t sms = 0, max_threads_per_sm = 0, max_blocks_per_sm = 0, registers_per_sm = 0;
  std::int32_t shared_per_sm = 0, shared_per_block_optin = 0, shared_per_block = 0,
               reserved_shared_per_block = 0;
  std::int32_t max_threads_per_block = 0, clock_khz = 0;
  std::int32_t first = 0;  // 1: this is the process's first connection, a descriptor follows
  std::int32_t peers_reachable = 1;
  char device_name[64] = {};
};

class Writer {
 public:
  template <typename T>
  Writer& put(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    std::memcpy(bytes_.data() + at, &value, sizeof value);
    return *this;
  }
  Writer& u8(std::uint8_t v) { return put(v); }
  Writer& u32(std::uint32_t v) { return put(v); }
  Writer& i32(std::int32_t v) { return put(v); }
  Writer& u64(std::uint64_t v) { return put(v); }
  Writer& blob(const void* data, std::size_t n) {
    u64(n);
    const std::size_t at = bytes_.size();
    bytes_.resize(at + n);
    if (n != 0) std::memcpy(bytes_.data() + at, data, n);
    return *this;
  }
  Writer& text(std::string_view s) { return blob(s.data(), s.size()); }
  // Room for `n` bytes that the caller fills at once.
  std::uint8_t* room(std::size_t n) {
    u64(n);
    const std::size_t at = bytes_.size();
    bytes_.resize(at + n);
    return bytes_.data() + at;
  }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }
  std::vector<std::uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<std::uint8_t> bytes_;
};

// Never reads past the end: a short payload gives zeros and ok() turns false.
class Reader {
 public:
  Reader() = default;
  Reader(const std::uint8_t* data, std::size_t n) : data_(data), size_(n) {}
  explicit Reader(const std::vector<std::uint8_t>& bytes) : Reader(bytes.data(), bytes.size()) {}

  template <typename T>
  T get() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (!ok_ || size_ - at_ < sizeof value) {
      ok_ = false;
      return value;
    }
    std::memcpy(&value, data_ + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::uint8_t u8() { return get<std::uint8_t>(); }
  std::uint32_t u32() { return get<std::uint32_t>(); }
  std::int32_t i32() { return get<std::int32_t>(); }
  std::uint64_t u64() { return get<std::uint64_t>(); }
  // A value of an enumeration whose last enumerator is `last`; others make the reader fail.
  template <typename E>
  E choice(E last) {
    const auto value = get<std::underlying_type_t<E>>();
    if (value > static_cast<std::underlying_type_t<E>>(last)) ok_ = false;
    return ok_ ? static_cast<E>(value) : E{};
  }
  std::string_view blob() {
    const std::uint64_t n = u64();
    if (!ok_ || size_ - at_ < n) {
      ok_ = false;
      return {};
    }
    const std::string_view out(reinterpret_cast<const char*>(data_) + at_, n);
    at_ += n;
    return out;
  }
  std::string_view text() { return blob(); }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && at_ == size_; }

 private:
  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0, at_ = 0;
  bool ok_ = true;
};

// A request header that this node can take: magic, version, operation and size in range, the name terminated.
inline bool valid(const RequestHeader& header) {
  return header.magic == kMagic && header.version == kVersion &&
         header.op < static_cast<std::uint16_t>(Op::kCount) && header.bytes <= kMaxPayload &&
         std::memchr(header.name, 0, sizeof header.name) != nullptr;
}
inline bool is_note(Op op) { return op >= Op::kNoteModule && op <= Op::kNoteEnd; }

}  // namespace echolo::runtime::wire
