// echolo-pe: the host process of one PE of a candidate. It loads the candidate's library and does what the
// node says: create, run, run again at once, capture a run and replay it, destroy. It never sees an expected
// output.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nvshmem.h>

#include <cxxabi.h>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <typeinfo>
#include <vector>

#include "echolo/candidate.hpp"
#include "runtime/pe/client.hpp"

namespace {

using echolo::runtime::pe::Call;
namespace wire = echolo::runtime::wire;

struct State;
using CreateFn = State* (*)(const echolo::Launch&);
using RunFn = void (*)(State*, const echolo::Launch&, echolo::TensorList, echolo::TensorList, cudaStream_t);
using DestroyFn = void (*)(State*);

void note(wire::Op op, const std::string& text) {
  wire::Writer out;
  out.text(text);
  __cudaEcholoNote(static_cast<std::uint16_t>(op), out.bytes().data(), out.bytes().size());
}

// The node ends the job at the note; this process must not go on past it.
[[noreturn]] void give_up(wire::Op op, const std::string& text) {
  note(op, text);
  std::fflush(nullptr);
  ::_Exit(124);
}

template <typename Fn>
Fn symbol(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (found == nullptr) give_up(wire::Op::kNoteFailure, std::string("the candidate does not define ") + name);
  return reinterpret_cast<Fn>(found);
}

template <typename Body>
void guarded(Body&& body) {
  try {
    body();
  } catch (const std::exception& e) {
    int status = 0;
    char* type = abi::__cxa_demangle(typeid(e).name(), nullptr, nullptr, &status);
    give_up(wire::Op::kNoteException,
            std::string(type == nullptr ? typeid(e).name() : type) + ": " + e.what());
  } catch (...) {
    give_up(wire::Op::kNoteException, "of unknown type");
  }
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) {
    give_up(wire::Op::kNoteFailure, std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error));
  }
}

struct Tensors {
  std::vector<echolo::Tensor> items;
  echolo::TensorList list() const { return {items.data(), static_cast<std::int32_t>(items.size())}; }
};

Tensors read_list(wire::Reader& in) {
  Tensors out;
  const std::uint32_t n = in.u32();
  for (std::uint32_t i = 0; i < n && in.ok(); ++i) {
    echolo::Tensor tensor{};
    tensor.dtype = static_cast<echolo::DType>(in.i32());
    tensor.rank = in.i32();
    for (std::int64_t& extent : tensor.shape) extent = in.get<std::int64_t>();
    tensor.data = reinterpret_cast<void*>(in.u64());
    out.items.push_back(tensor);
  }
  return out;
}

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    give_up(wire::Op::kNoteFailure, std::string(what) + ": " + cudaGetErrorName(error));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: echolo-pe CANDIDATE.so (started by echolo-node)\n");
    return 2;
  }
  if (__cudaEcholoHello() == nullptr) return 2;
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    give_up(wire::Op::kNoteFailure, std::string("the candidate does not load: ") + dlerror());
  const auto create = symbol<CreateFn>(library, "candidate_create");
  const auto run = symbol<RunFn>(library, "candidate_run");
  const auto destroy = symbol<DestroyFn>(library, "candidate_destroy");
  check(cudaSetDevice(__cudaEcholoHello()->pe), "cudaSetDevice");
  nvshmem_init();
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");

  State* state = nullptr;
  std::string problem;
  std::vector<std::string> names;
  std::vector<echolo::Param> params;
  echolo::Launch launch{};
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  for (;;) {
    Call call(wire::Op::kNextCommand, "next command");
    call.in.u64(reinterpret_cast<std::uint64_t>(stream));
    if (call.send() != echolo::runtime::pe::kSuccess) return 2;
    const auto kind = call.out.choice(wire::CommandKind::kExit);
    call.out.i32();
    switch (kind) {
      case wire::CommandKind::kCreate: {
        problem = std::string(call.out.text());
        launch.dtype = static_cast<echolo::DType>(call.out.i32());
        const std::uint32_t n = call.out.u32();
        names.reserve(n);
        for (std::uint32_t i = 0; i < n; ++i) {
          names.emplace_back(call.out.text());
          params.push_back({names.back().c_str(), call.out.get<std::int64_t>()});
        }
        launch.pe = __cudaEcholoHello()->pe;
        launch.n_pes = __cudaEcholoHello()->n_pes;
        launch.n_params = static_cast<std::int32_t>(params.size());
        launch.params = params.data();
        launch.problem = problem.c_str();
        guarded([&] { state = create(launch); });
        break;
      }
      case wire::CommandKind::kRun: {
        const Tensors in = read_list(call.out), out = read_list(call.out);
        guarded([&] { run(state, launch, in.list(), out.list(), stream); });
        break;
      }
      case wire::CommandKind::kCapture: {
        const Tensors in = read_list(call.out), out = read_list(call.out);
        check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
        guarded([&] { run(state, launch, in.list(), out.list(), stream); });
        check(cudaStreamEndCapture(stream, &graph),
              "capturing candidate_run into a graph failed, cudaStreamEndCapture");
        check(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
        break;
      }
      case wire::CommandKind::kReplay:
        check(cudaGraphLaunch(exec, stream), "cudaGraphLaunch");
        break;
      case wire::CommandKind::kDestroy:
        check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
        if (exec != nullptr) cudaGraphExecDestroy(exec);
        if (graph != nullptr) cudaGraphDestroy(graph);
        guarded([&] { destroy(state); });
        break;
      case wire::CommandKind::kExit:
        cudaStreamDestroy(stream);
        nvshmem_finalize();
        note(wire::Op::kNoteEnd, "");
        std::fflush(nullptr);
        // Static destructors of a candidate are its own affair, but they must not change how this process
        // ended.
        ::_Exit(0);
    }
  }
}
