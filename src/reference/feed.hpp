// A reference run beside other work: its cases can be taken one by one while later ones are still being made.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "problem/problem.hpp"
#include "reference/reference.hpp"

namespace echolo {

class ReferenceFeed {
 public:
  // Starts at once, in a thread of its own. `problem` must outlive this.
  ReferenceFeed(const Problem& problem, ReferenceRequest request);
  ReferenceFeed(const ReferenceFeed&) = delete;
  ReferenceFeed& operator=(const ReferenceFeed&) = delete;
  // Ends the run where it has not ended; the cases that are finished stay in the cache.
  ~ReferenceFeed();

  // Waits for the case with that index in the request; what it points to lives as long as this. Errors: those
  // of run_reference(), for every case that was not finished before.
  Result<const CaseResult*> wait_for(std::size_t index);

  // Ends the run early, or waits for nothing where it has ended. Afterwards the two below stand still.
  void stop();
  bool all_cached() const;  // of the cases that there are
  double seconds() const;   // from the start to the end of the run

 private:
  void work();

  const Problem& problem_;
  ReferenceRequest request_;
  std::atomic<bool> cancel_{false};
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::optional<CaseResult>> cases_;
  std::optional<Error> error_;
  bool over_ = false;
  double seconds_ = 0;
  std::thread thread_;  // last: it uses everything above
};

}  // namespace echolo
