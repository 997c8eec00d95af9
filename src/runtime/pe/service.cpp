#include "runtime/pe/service.hpp"

#include <pthread.h>
#include <semaphore.h>

#include <cstring>
#include <vector>

#include "runtime/pe/client.hpp"

namespace echolo::runtime::pe {
namespace {

pthread_once_t g_once = PTHREAD_ONCE_INIT;
sem_t g_connected;

void* serve(void*) {
  __cudaEcholoHello();
  sem_post(&g_connected);
  std::vector<std::uint8_t> result;
  for (std::uint8_t state = 0;; state = 1) {
    Call call(wire::Op::kService, "service thread");
    call.in.u8(state).blob(result.data(), result.size());
    if (call.send() != kSuccess) return nullptr;
    const auto kind = call.out.choice(wire::ServiceKind::kWriteHost);
    const std::uint64_t a = call.out.u64(), b = call.out.u64(), c = call.out.u64();
    const std::string_view bytes = call.out.blob();
    if (!call.out.ok()) return nullptr;
    result.clear();
    switch (kind) {
      case wire::ServiceKind::kFunction:
        reinterpret_cast<void (*)(void*)>(a)(reinterpret_cast<void*>(b));
        break;
      case wire::ServiceKind::kCallback:
        reinterpret_cast<void (*)(void*, int, void*)>(a)(reinterpret_cast<void*>(c), kSuccess,
                                                         reinterpret_cast<void*>(b));
        break;
      case wire::ServiceKind::kReadHost: {
        const auto* from = reinterpret_cast<const std::uint8_t*>(a);
        result.assign(from, from + b);
        break;
      }
      case wire::ServiceKind::kWriteHost:
        std::memcpy(reinterpret_cast<void*>(a), bytes.data(), bytes.size());
        break;
    }
  }
}

void start_once() {
  pthread_t thread;
  sem_init(&g_connected, 0, 0);
  if (pthread_create(&thread, nullptr, serve, nullptr) != 0) return;
  pthread_detach(thread);
  // From here on the node knows the thread and waits for its calls, so that runs repeat.
  while (sem_wait(&g_connected) != 0) {
  }
}

}  // namespace

void start_service() { pthread_once(&g_once, start_once); }

}  // namespace echolo::runtime::pe
