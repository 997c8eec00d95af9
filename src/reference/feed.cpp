#include "reference/feed.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace echolo {

ReferenceFeed::ReferenceFeed(const Problem& problem, ReferenceRequest request)
    : problem_(problem), request_(std::move(request)), cases_(request_.cases.size()) {
  request_.cancel = &cancel_;
  thread_ = std::thread([this] { work(); });
}

ReferenceFeed::~ReferenceFeed() { stop(); }

void ReferenceFeed::work() {
  const auto start = std::chrono::steady_clock::now();
  Result<ReferenceRun> run =
      run_reference(problem_, request_, [this](std::size_t index, const CaseResult& result) {
        const std::scoped_lock lock(mutex_);
        cases_[index] = result;
        arrived_.notify_all();
      });
  const std::scoped_lock lock(mutex_);
  if (!run) error_ = std::move(run).error();
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  over_ = true;
  arrived_.notify_all();
}

Result<const CaseResult*> ReferenceFeed::wait_for(std::size_t index) {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return cases_.at(index).has_value() || over_; });
  if (cases_[index]) return &*cases_[index];
  if (error_) return *error_;
  return machine_error("the reference ended without case " + std::to_string(index + 1));
}

void ReferenceFeed::stop() {
  cancel_.store(true);
  if (thread_.joinable()) thread_.join();
}

bool ReferenceFeed::all_cached() const {
  const std::scoped_lock lock(mutex_);
  return std::all_of(cases_.begin(), cases_.end(), [](const auto& one) { return !one || one->cached; });
}

double ReferenceFeed::seconds() const {
  const std::scoped_lock lock(mutex_);
  return seconds_;
}

}  // namespace echolo
