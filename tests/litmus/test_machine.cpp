// The machine as an executor uses it: operations as they are issued, loads asked for what they may return.
#include <gtest/gtest.h>

#include "model/machine.hpp"

namespace echolo::model {
namespace {

Event access(int thread, Kind kind, int address, bool strong, Scope scope, bool orders = false) {
  Event event;
  event.kind = kind;
  event.thread = static_cast<std::int16_t>(thread);
  event.address = static_cast<std::int16_t>(address);
  event.strong = strong;
  event.scope = scope;
  event.acquire = kind == Kind::kRead && orders;
  event.release = kind == Kind::kWrite && orders;
  return event;
}

struct TwoGpus {
  Machine machine;
  int writer = machine.add_thread({0, 0, 0});
  int reader = machine.add_thread({1, 0, 0});
  int data = machine.add_address(machine.add_location(0));
  int flag = machine.add_address(machine.add_location(0));

  EventId store(int address, std::int64_t value, bool strong, Scope scope, bool release = false) {
    const EventId id = machine.issue(access(writer, Kind::kWrite, address, strong, scope, release));
    machine.present(id, value);
    return id;
  }
  EventId load(int address, bool strong, Scope scope, bool acquire = false) {
    return machine.issue(access(reader, Kind::kRead, address, strong, scope, acquire));
  }
};

TEST(Machine, StaleValuesAreReadableUntilAcquired) {
  TwoGpus two;
  const EventId data = two.store(two.data, 42, false, Scope::kCta);
  const EventId flag = two.store(two.flag, 1, true, Scope::kSys, true);
  const EventId seen = two.load(two.flag, true, Scope::kSys, true);
  const EventId value = two.load(two.data, false, Scope::kCta);
  EXPECT_EQ(two.machine.readable(value), (std::vector<EventId>{kInitial, data}));
  EXPECT_EQ(two.machine.readable(seen), (std::vector<EventId>{kInitial, flag}));
  two.machine.bind(seen, flag);
  EXPECT_EQ(two.machine.readable(value), (std::vector<EventId>{data}));
}

TEST(Machine, AnAcquireOfTooNarrowAScopeOrdersNothing) {
  TwoGpus two;
  const EventId data = two.store(two.data, 42, false, Scope::kCta);
  const EventId flag = two.store(two.flag, 1, true, Scope::kSys, true);
  const EventId seen = two.load(two.flag, true, Scope::kGpu, true);
  const EventId value = two.load(two.data, false, Scope::kCta);
  two.machine.bind(seen, flag);
  EXPECT_EQ(two.machine.readable(value), (std::vector<EventId>{kInitial, data}));
}

TEST(Machine, FailedCompareAndSwapWritesNothing) {
  TwoGpus two;
  const EventId read = two.machine.issue_rmw(access(0, Kind::kRead, two.data, true, Scope::kSys),
                                             access(0, Kind::kWrite, two.data, true, Scope::kSys));
  const EventId other = two.load(two.data, true, Scope::kSys);
  two.machine.bind(read, kInitial);
  EXPECT_EQ(two.machine.readable(other), (std::vector<EventId>{kInitial}));
  two.machine.present(read + 1, 5);
  EXPECT_EQ(two.machine.readable(other), (std::vector<EventId>{kInitial, read + 1}));
}

TEST(Machine, RacingWritesLeaveCoherenceOpen) {
  TwoGpus two;
  const EventId first = two.store(two.data, 1, true, Scope::kSys);
  const EventId second = two.machine.issue(access(two.reader, Kind::kWrite, two.data, true, Scope::kSys));
  two.machine.present(second, 2);
  Relations relations;
  two.machine.relate(relations);
  EXPECT_EQ(two.machine.last_writes(0, relations).size(), 2U);
  EXPECT_EQ(two.machine.undecided(relations), std::make_pair(first, second));
  two.machine.decide(second, first);
  Relations after;
  two.machine.relate(after);
  EXPECT_EQ(two.machine.last_writes(0, after), (std::vector<EventId>{first}));
  EXPECT_FALSE(two.machine.undecided(after).has_value());
}

TEST(Machine, FenceScOrderAgainstProgramOrderIsInconsistent) {
  TwoGpus two;
  Event fence;
  fence.kind = Kind::kFence;
  fence.strong = fence.sc = true;
  fence.scope = Scope::kSys;
  const EventId first = two.machine.issue(fence);
  const EventId second = two.machine.issue(fence);
  two.machine.decide(second, first);
  EXPECT_FALSE(two.machine.consistent());
}

Event point(int thread) {
  Event event;
  event.thread = static_cast<std::int16_t>(thread);
  return event;
}

TEST(Machine, ForgetsThePastBehindABarrierOfAll) {
  TwoGpus two;
  two.store(two.data, 1, false, Scope::kCta);
  two.store(two.data, 42, false, Scope::kCta);
  EXPECT_FALSE(two.machine.forget()) << "the reader has not come after the writes";
  const EventId arrived = two.machine.issue(point(two.writer));
  const EventId arrived_too = two.machine.issue(point(two.reader));
  for (const int thread : {two.writer, two.reader}) {
    const EventId left = two.machine.issue(point(thread));
    two.machine.order(arrived, left);
    two.machine.order(arrived_too, left);
  }
  ASSERT_TRUE(two.machine.forget());
  EXPECT_EQ(two.machine.size(), 0);
  const EventId value = two.load(two.data, false, Scope::kCta);
  EXPECT_EQ(two.machine.readable(value), (std::vector<EventId>{kInitial}));
  EXPECT_EQ(two.machine.value_of(kInitial, 0), 42);
}

TEST(Machine, ForgetsNoRacingWrites) {
  TwoGpus two;
  two.store(two.data, 1, true, Scope::kSys);
  const EventId second = two.machine.issue(access(two.reader, Kind::kWrite, two.data, true, Scope::kSys));
  two.machine.present(second, 2);
  const EventId arrived = two.machine.issue(point(two.writer));
  const EventId arrived_too = two.machine.issue(point(two.reader));
  for (const int thread : {two.writer, two.reader}) {
    const EventId left = two.machine.issue(point(thread));
    two.machine.order(arrived, left);
    two.machine.order(arrived_too, left);
  }
  EXPECT_FALSE(two.machine.forget());
  two.machine.decide(0, second);
  EXPECT_TRUE(two.machine.forget());
  EXPECT_EQ(two.machine.initial(0), 2);
}

}  // namespace
}  // namespace echolo::model
