// Which handler answers which request, and what all of them need.
#include <algorithm>

#include "runtime/node/node.hpp"

namespace echolo::runtime {

vgpu::Site Node::host_site(int pe, const HostThread& thread, std::string role) const {
  vgpu::Site site;
  site.role = std::move(role);
  site.pe = pe;
  site.on_device = false;
  site.where = sites_.frame(pe, thread.pending.header.frames);
  site.call = driver_ ? driver_->call_of(pe) : 0;
  return site;
}

Op Node::make_op(int pe, const HostThread& thread, std::string what) const {
  Op op;
  op.pe = pe;
  op.what = std::move(what);
  op.site = host_site(pe, thread, "call");
  op.call = op.site.call;
  // Without bulk data: what a graph tells of its nodes.
  constexpr std::size_t kCopyFields = 128, kMostKept = 64U << 10U;
  const std::vector<std::uint8_t>& payload = thread.pending.payload;
  const bool copy = thread.pending.op() == wire::Op::kCopy;
  const auto kept = static_cast<std::ptrdiff_t>(std::min(payload.size(), copy ? kCopyFields : kMostKept));
  op.request_op = thread.pending.header.op;
  op.request = std::make_shared<const std::vector<std::uint8_t>>(payload.begin(), payload.begin() + kept);
  return op;
}

Node::Module* Node::module_of(int pe, std::uint32_t number) {
  auto& modules = pes_[static_cast<std::size_t>(pe)]->modules;
  const auto it = modules.find(number);
  return it == modules.end() ? nullptr : &it->second;
}

std::uint64_t Node::serve(int pe, PeState::Service service) {
  PeState& state = *pes_[static_cast<std::size_t>(pe)];
  state.services.push_back(std::move(service));
  state.needs_service = true;
  return ++state.n_asked;
}

Answer Node::wait_for(int pe, HostThread& thread, const std::string& what) {
  thread.pending.waits_for = what;
  if (!engine_.done(thread.pending.wait)) return Answer::blocked();
  engine_.learn(pe, thread.pending.wait);
  return Answer::ok();
}

vgpu::Memory::Accessor host_accessor(const Op& op, bool any_pe) {
  vgpu::Memory::Accessor who;
  who.site = &op.site;
  who.pe = op.pe;
  who.what = op.what;
  who.agent = op.agent;
  who.any_pe = any_pe;
  return who;
}

namespace {

struct ErrorRow {
  const char* name;
  int value;
};
// The errors that the node itself gives.
constexpr ErrorRow kErrors[] = {{"cudaErrorInvalidValue", 1},
                                {"cudaErrorMemoryAllocation", 2},
                                {"cudaErrorInvalidConfiguration", 9},
                                {"cudaErrorInvalidSymbol", 13},
                                {"cudaErrorInvalidDeviceFunction", 98},
                                {"cudaErrorInvalidPtx", 218},
                                {"cudaErrorInvalidResourceHandle", kBadHandle},
                                {"cudaErrorSymbolNotFound", 500},
                                {"cudaErrorLaunchOutOfResources", 701},
                                {"cudaErrorCooperativeLaunchTooLarge", 720},
                                {"cudaErrorNotSupported", 801},
                                {"cudaErrorStreamCaptureUnsupported", kCaptureUnsupported},
                                {"cudaErrorStreamCaptureInvalidated", kCaptureInvalidated},
                                {"cudaErrorStreamCaptureMerge", kCaptureMerge},
                                {"cudaErrorStreamCaptureUnmatched", kCaptureUnmatched},
                                {"cudaErrorStreamCaptureUnjoined", kCaptureUnjoined},
                                {"cudaErrorStreamCaptureIsolation", kCaptureIsolation},
                                {"cudaErrorStreamCaptureImplicit", kCaptureImplicit},
                                {"cudaErrorCapturedEvent", kCapturedEvent},
                                {"cudaErrorStreamCaptureWrongThread", kCaptureWrongThread}};

}  // namespace

// An engine message begins with the name of its CUDA error; the answer is its number, cudaErrorUnknown where
// it has none.
int Node::refuse(int pe, const HostThread& thread, const Error& error) {
  auto& notes = pes_[static_cast<std::size_t>(pe)]->notes;
  if (notes.size() < 16) notes.push_back(call_text(pe, thread) + ": " + error.message);
  for (const ErrorRow& row : kErrors) {
    if (error.message.rfind(row.name, 0) == 0) return row.value;
  }
  return 999;
}

// The first call that failed explains a failure better than the last error, which is what the program sees.
void Node::remember_refusal(int pe, const HostThread& thread, int error) {
  std::string& first = pes_[static_cast<std::size_t>(pe)]->first_refusal;
  if (!first.empty() || error == kOk || error == kNotReadyYet) return;
  for (const ErrorRow& row : kErrors) {
    if (row.value == error) first = call_text(pe, thread) + ": " + row.name;
  }
}

// "cudaStreamSynchronize at candidate.cu:12"
std::string Node::call_text(int pe, const HostThread& thread) const {
  const std::string token = sites_.token(pe, thread.pending.header.frames);
  return thread.pending.header.name + (token.empty() ? "" : " at " + token);
}

Answer Node::handle(int pe, HostThread& thread) {
  const wire::Op op = thread.pending.op();
  const wire::Reader in(thread.pending.payload);
  if (!thread.greeted && op != wire::Op::kHello) return Answer::malformed();
  switch (op) {
    case wire::Op::kHello:
      return hello(pe, thread, in);
    case wire::Op::kLoadModule:
      return load_module(pe, thread, in);
    case wire::Op::kUnloadModule:
      return unload_module(pe, thread, in);
    case wire::Op::kKernelNames:
      return kernel_names(pe, in);
    case wire::Op::kKernelInfo:
      return kernel_info(pe, in);
    case wire::Op::kVariable:
      return variable(pe, in);
    case wire::Op::kFunctionLimit:
      return function_limit(pe, in);
    case wire::Op::kOccupancy:
      return occupancy(pe, in);
    case wire::Op::kLaunch:
      return launch(pe, thread, in);
    case wire::Op::kAllocate:
      return allocate(pe, thread, in);
    case wire::Op::kFree:
      return release(pe, thread, in);
    case wire::Op::kFreeAsync:
      return release_async(pe, thread, in);
    case wire::Op::kMemoryInfo:
      return memory_info(pe);
    case wire::Op::kPointerInfo:
      return pointer_info(pe, in);
    case wire::Op::kCopy:
      return copy(pe, thread, in);
    case wire::Op::kFill:
      return fill(pe, thread, in);
    case wire::Op::kPool:
      return pool_call(pe, thread, in);
    case wire::Op::kVirtual:
      return virtual_call(pe, thread, in);
    case wire::Op::kIpcMemory:
      return ipc_memory(pe, thread, in);
    case wire::Op::kIpcEvent:
      return ipc_event(pe, in);
    case wire::Op::kStreamCreate:
    case wire::Op::kStreamDestroy:
    case wire::Op::kStreamSync:
    case wire::Op::kStreamQuery:
    case wire::Op::kStreamWaitEvent:
    case wire::Op::kStreamInfo:
    case wire::Op::kDeviceSync:
      return stream_call(pe, thread, in);
    case wire::Op::kEventCreate:
    case wire::Op::kEventDestroy:
    case wire::Op::kEventRecord:
    case wire::Op::kEventSync:
    case wire::Op::kEventQuery:
    case wire::Op::kEventElapsed:
      return event_call(pe, thread, in);
    case wire::Op::kCaptureBegin:
    case wire::Op::kCaptureEnd:
    case wire::Op::kCaptureInfo:
    case wire::Op::kCaptureMode:
    case wire::Op::kGraphInstantiate:
    case wire::Op::kGraphLaunch:
    case wire::Op::kGraphDestroy:
    case wire::Op::kGraphExecDestroy:
      return graph_call(pe, thread, in);
    case wire::Op::kCaptureDepend:
    case wire::Op::kGraphCreate:
    case wire::Op::kGraphClone:
    case wire::Op::kGraphDestroyNode:
    case wire::Op::kGraphNodes:
    case wire::Op::kGraphEdges:
    case wire::Op::kGraphNodeInfo:
    case wire::Op::kGraphDepend:
    case wire::Op::kGraphFindInClone:
    case wire::Op::kGraphUpdate:
    case wire::Op::kGraphEnable:
      return graph_edit(pe, thread, in);
    case wire::Op::kGraphAddNode:
      return add_graph_node(pe, thread, in);
    case wire::Op::kGraphSetNode:
      return set_graph_node(pe, thread, in);
    case wire::Op::kStreamWord:
      return stream_word(pe, thread, in);
    case wire::Op::kHostFunction:
      return host_function(pe, thread, in);
    case wire::Op::kService:
      return service(pe, thread, in);
    case wire::Op::kShmemInit:
      return shmem_init(pe);
    case wire::Op::kShmemFinalize:
      return shmem_finalize(pe, thread);
    case wire::Op::kShmemCall:
      return shmem_call(pe, thread, in);
    case wire::Op::kNextCommand:
      return next_command(pe, thread, in);
    case wire::Op::kNoteModule:
    case wire::Op::kNoteCrash:
    case wire::Op::kNoteExit:
    case wire::Op::kNoteException:
    case wire::Op::kNoteFailure:
    case wire::Op::kNoteUnsupported:
    case wire::Op::kNoteEnd:
    case wire::Op::kCount:
      break;
  }
  return Answer::malformed();
}

Answer Node::hello(int pe, HostThread& thread, wire::Reader in) {
  const std::uint32_t process = in.u32();
  thread.is_main = process == in.u32();
  if (!in.done() || thread.greeted) return Answer::malformed();
  const bool first = thread.index == 0;
  const vgpu::GpuModel& gpu = machine_->config().gpu;
  wire::Hello hello;
  hello.pe = pe;
  hello.n_pes = spec_.world;
  hello.device_bytes = vgpu::MemoryConfig{}.device_bytes;
  hello.sms = gpu.sms;
  hello.max_threads_per_sm = gpu.max_threads_per_sm;
  hello.max_blocks_per_sm = gpu.max_blocks_per_sm;
  hello.registers_per_sm = gpu.registers_per_sm;
  hello.shared_per_sm = gpu.shared_per_sm;
  hello.shared_per_block_optin = gpu.shared_per_block_optin;
  hello.shared_per_block = gpu.shared_per_block;
  hello.reserved_shared_per_block = gpu.reserved_shared_per_block;
  hello.max_threads_per_block = gpu.max_threads_per_block;
  hello.clock_khz = gpu.clock_khz;
  hello.first = first ? 1 : 0;
  hello.peers_reachable = machine_->config().peers_reachable ? 1 : 0;
  gpu.name.copy(hello.device_name, sizeof hello.device_name - 1);
  thread.greeted = true;
  Answer answer;
  answer.payload.resize(sizeof hello);
  std::memcpy(answer.payload.data(), &hello, sizeof hello);
  if (first) answer.fd = machine_->memory().host_fd(pe);
  return answer;
}

Answer Node::next_command(int pe, HostThread& thread, wire::Reader in) {
  const StreamHandle stream = in.u64();
  if (!in.done() || !driver_) return Answer::malformed();
  Result<std::vector<std::uint8_t>> command = driver_->next(pe, thread.index, stream);
  if (!command.ok()) {
    stop("infra", command.error().render());
    return Answer::blocked();
  }
  Answer answer;
  answer.payload = std::move(*command);
  return answer;
}

}  // namespace echolo::runtime
