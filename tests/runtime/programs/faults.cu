// Host code that misbehaves, one way an argument. The node must survive all of them and say what happened and where.
#include <cuda_runtime.h>
#include <nvshmem.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

__global__ void touch(int* p) { p[threadIdx.x] = 1; }

static int total(const int* p) {
  int sum = 0;
  for (int i = 0; i < 32; ++i) sum += p[i];  // host-dereference
  return sum;
}

static void crash(int* p) {
  *p = 1;  // segmentation fault
}

static volatile int g_sink = 0;
static void spin() {
  while (true) g_sink = g_sink + 1;  // endless
}

static int* device_memory() {
  int* p = nullptr;
  cudaMalloc(&p, 128);  // allocation
  touch<<<1, 32>>>(p);
  cudaDeviceSynchronize();
  return p;
}

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  nvshmem_init();
  const int me = nvshmem_my_pe();
  const bool culprit = me == nvshmem_n_pes() - 1 || name == "everyone";
  std::printf("PE %d begins\n", me);
  if (culprit) {
    int* p = device_memory();
    if (name == "everyone") nvshmem_barrier_all();
    if (name == "dereference" || name == "everyone") return total(p);
    if (name == "strlen") return static_cast<int>(std::strlen(reinterpret_cast<char*>(p)));
    if (name == "segv") crash(reinterpret_cast<int*>(0x10));
    if (name == "bad_source") return cudaMemcpy(p, reinterpret_cast<void*>(0x20), 4, cudaMemcpyHostToDevice);
    if (name == "abort") std::abort();
    if (name == "throw") throw std::runtime_error("out of luck");
    if (name == "exit") std::exit(3);
    if (name == "quick_exit") _exit(4);
    if (name == "exit_in_good_faith") std::exit(0);
    if (name == "kill") raise(SIGKILL);
    if (name == "spin") spin();
    if (name == "sleep") sleep(1000);
    if (name == "output") {
      for (;;) std::puts("and so on and so forth, and so on and so forth, and so on and so forth");
    }
    if (name == "control_bytes") std::printf("\033[31mred\033[0m\a\n");
    if (name == "past_the_end") cudaMemset(p, 0, 132);
    if (name == "no_free") (void)p;
    if (name == "fork") {
      const pid_t child = fork();
      if (child == 0) _exit(0);
      std::printf("fork %s\n", child < 0 ? "refused" : "made");
    }
    if (name == "sandbox") {
      std::printf("socket %s\n", socket(AF_INET, SOCK_STREAM, 0) < 0 ? "refused" : "made");
      std::printf("shadow %s\n", access("/etc/passwd", F_OK) != 0 ? "hidden" : "seen");
      std::FILE* file = std::fopen("written-by-a-pe", "w");
      std::printf("write %s\n", file == nullptr ? "refused" : "made");
      std::printf("parent %s\n", kill(getppid(), 0) != 0 || getppid() <= 1 ? "hidden" : "seen");
    }
    if (name == "slow_to_end") {
      std::size_t n_free = 0, n_all = 0;
      for (int i = 0; i < 50; ++i) {
        usleep(50'000);
        cudaMemGetInfo(&n_free, &n_all);
      }
    }
    if (name != "no_free") cudaFree(p);
  }
  if (name == "early_finalize" && culprit) nvshmem_finalize();
  nvshmem_barrier_all();
  if (name == "mismatch") {
    if (culprit) nvshmem_sync_all();
    nvshmem_barrier_all();
  }
  nvshmem_finalize();
  std::printf("PE %d ends\n", me);
  if (name == "slow_to_end" && culprit) {
    // Its connections are gone for a while before it is.
    for (int fd = 3; fd < 64; ++fd) {
      int type = 0;
      socklen_t size = sizeof type;
      if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM) close(fd);
    }
    usleep(300'000);
    _exit(0);
  }
  return 0;
}
