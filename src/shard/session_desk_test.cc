#include "shard/session_desk.h"

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "store/keys.h"
#include "store/memory_store.h"

namespace fairlead::shard {
namespace {

const NamespaceNum kNs(7);
const QueueName kQueue{kNs, model::ACTIVITY_TASK, "q"};

class FixedClock final : public Clock {
 public:
  TimeNs now() override { return time; }
  TimeNs time = 1000 * kSecond;
};

class PlainCommitLog final : public CommitLog {
 public:
  explicit PlainCommitLog(store::Store* store) : store_(store) {}
  void write(const store::WriteBatch& batch) override { (void)store_->write(batch); }
  void after_durable(Job effect) override { effect(); }

 private:
  store::Store* const store_;
};

struct Desk {
  Desk() {
    for (const char* worker : {"one", "two"}) {
      desk->put_worker(kNs, worker, {"q", "", {"gpu"}, 2, clock.time, kMinute});
    }
  }
  std::string row(const std::string& id) {
    return store.get(store::keys::session(kNs, id))->value_or("");
  }
  FixedClock clock;
  store::MemoryStore store;
  PlainCommitLog commits{&store};
  std::vector<QueueName> told;
  std::shared_ptr<SessionDesk> desk = std::make_shared<SessionDesk>(SessionDesk::Env{
      .clock = &clock,
      .commits = &commits,
      .look_again = [this](const QueueName& queue) { told.push_back(queue); },
  });
};

admission::SessionTerms terms() { return {"render", {"gpu"}, 10, 60, 2, true, true}; }

// These bytes are on disk. A test that fails here means that an upgrade would lose people's rows:
// change the code back, not the bytes.
TEST(SessionDesk, RowsHaveTheirGoldenBytes) {
  Desk world;
  ASSERT_FALSE(world.desk->create(kNs, terms(), "one").refusal.has_value());
  EXPECT_EQ(absl::BytesToHexString(world.row("render")),
            "0a170a0672656e6465721203677075180a203c2802300138011201711a036f6e65"
            "3080a094a58d1d3880a094a58d1d4080a094a58d1d5080e8c3c5b21d5880d0b1e7ec1e");
  ASSERT_FALSE(world.desk->close(kNs, "render", "one").refusal.has_value());
  EXPECT_EQ(absl::BytesToHexString(world.row("render")),
            "0a170a0672656e6465721203677075180a203c2802300138011201711a036f6e65"
            "20013080a094a58d1d3880a094a58d1d4080a094a58d1d4880a094a58d1d5080e8c3c5b21d"
            "5880d0b1e7ec1e");

  SessionDesk again({.clock = &world.clock, .commits = &world.commits});
  ASSERT_TRUE(again.load(world.store).ok());
  const auto session = again.find(kNs, "render");
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->terms, terms());
  EXPECT_EQ(session->owner, "one");
  EXPECT_EQ(session->queue, "q");
  EXPECT_EQ(session->status, admission::Session::Status::kClosed);
}

TEST(SessionDesk, AClaimIsWrittenWithItsStartOrNeverWas) {
  Desk world;
  const auto stream = admission::session_stream("", terms());
  {
    auto hold = world.desk->claim(kQueue, stream, "one");
    ASSERT_TRUE(hold.has_value());
    EXPECT_FALSE(world.desk->claim(kQueue, stream, "two").has_value());
    EXPECT_TRUE(world.desk->look(kQueue, stream, "two").refusal.has_value());
  }
  EXPECT_EQ(world.told, std::vector<QueueName>{kQueue}) << "who was refused looks again";
  EXPECT_EQ(world.row("render"), "");
  auto hold = world.desk->claim(kQueue, stream, "two");
  ASSERT_TRUE(hold.has_value());
  store::WriteBatch batch;
  {
    const auto lock = world.desk->lock();
    std::move(*hold).start(lock, &batch);
    world.commits.write(batch);
  }
  EXPECT_NE(world.row("render"), "");
  EXPECT_EQ(world.desk->find(kNs, "render")->owner, "two");
  EXPECT_EQ(world.desk->find(kNs, "render")->running, 1);
  world.desk->release(kNs, "render");
  EXPECT_EQ(world.desk->find(kNs, "render")->running, 0);
}

TEST(SessionDesk, WorkersOfAnotherBuildAreNotAsked) {
  Desk world;
  const auto stream = admission::session_stream("v2", terms());
  EXPECT_FALSE(world.desk->claim(kQueue, stream, "one").has_value());
  world.desk->put_worker(kNs, "new", {"q", "v2", {"gpu"}, 1, world.clock.time, kMinute});
  EXPECT_TRUE(world.desk->claim(kQueue, stream, "new").has_value());
  EXPECT_FALSE(world.desk->claim(kQueue, "\x1fsession\x1fwrong", "one").has_value());
}

TEST(SessionDesk, ForgetsWhatHasBeenOverForLong) {
  Desk world;
  ASSERT_FALSE(world.desk->create(kNs, terms(), "one").refusal.has_value());
  world.clock.time += kHour;
  world.desk->sweep();
  EXPECT_NE(world.row("render"), "");
  world.clock.time += 2 * kDay;
  world.desk->sweep();
  EXPECT_EQ(world.row("render"), "");
  world.desk->hear_of_worker(kNs, "one");
  ASSERT_FALSE(world.desk->create(kNs, terms(), "one").refusal.has_value());
  world.desk->forget_namespace(kNs);
  EXPECT_EQ(world.row("render"), "");
}

}  // namespace
}  // namespace fairlead::shard
