#include "judge/jobs.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace echolo::judge {

Result<std::size_t> run_until_bad(std::size_t n_jobs, int n_parallel,
                                  const std::function<Result<bool>(std::size_t)>& run) {
  std::mutex mutex;
  std::size_t next = 0;
  std::size_t first_bad = n_jobs;
  std::map<std::size_t, Error> errors;
  const auto work = [&] {
    while (true) {
      std::size_t mine = 0;
      {
        const std::scoped_lock lock(mutex);
        if (next >= n_jobs || next >= first_bad) return;
        mine = next++;
      }
      Result<bool> good = run(mine);
      const std::scoped_lock lock(mutex);
      const bool bad = !good || !*good;
      if (!good) errors.emplace(mine, std::move(good).error());
      if (bad) first_bad = std::min(first_bad, mine);
    }
  };
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t n_threads =
      std::min<std::size_t>(n_jobs, n_parallel > 0 ? static_cast<unsigned>(n_parallel) : cores);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < n_threads; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  for (const auto& [index, error] : errors) {
    // An interruption outranks order: a job that it hit is not bad, it is unfinished.
    if (error.kind == ErrorKind::kInterrupted) return error;
  }
  if (const auto found = errors.find(first_bad); found != errors.end()) return found->second;
  return first_bad;
}

}  // namespace echolo::judge
