#include "admission/sessions.h"

#include "gtest/gtest.h"

namespace fairlead::admission {
namespace {

constexpr TimeNs kStart = 1'700'000'000 * kSecond;
const NamespaceNum kNs(7);

SessionTerms terms_of(const std::string& id) {
  SessionTerms terms;
  terms.id = id;
  return terms;
}

// Two workers of one queue, each with two slots, that were just heard of.
struct Fleet {
  Fleet() {
    for (const char* worker : {"one", "two"}) {
      sessions.put_worker(kNs, worker, {"q", "", {"gpu"}, 2, kStart, kMinute});
    }
  }
  std::optional<SessionRefusal> claim(const SessionTerms& terms, const std::string& worker,
                                      TimeNs now) {
    return sessions.claim(kNs, terms, worker, now).refusal;
  }
  void take(const SessionTerms& terms, const std::string& worker, TimeNs now) {
    ASSERT_EQ(claim(terms, worker, now), std::nullopt);
    sessions.start(kNs, terms, worker, now);
  }
  void hear(TimeNs now) {
    for (const char* worker : {"one", "two"}) sessions.hear_of_worker(kNs, worker, now);
  }
  Sessions sessions;
};

TEST(Sessions, TheFirstWorkerThatTakesATaskHoldsTheSession) {
  Fleet fleet;
  fleet.take(terms_of("s"), "one", kStart);
  fleet.sessions.release(kNs, "s");
  EXPECT_EQ(fleet.claim(terms_of("s"), "two", kStart), SessionRefusal::kOwnedByAnother);
  const auto look = fleet.sessions.look(kNs, terms_of("s"), "two", kStart);
  EXPECT_EQ(look.look_again_at, kStart + kMinute) << "then its worker is stale";
  EXPECT_EQ(fleet.claim(terms_of("s"), "one", kStart), std::nullopt);
  const auto* session = fleet.sessions.find(kNs, "s", kStart);
  EXPECT_EQ(session->owner, "one");
  EXPECT_EQ(session->lease_ends, kStart + 120 * kSecond);
  EXPECT_EQ(session->ttl_ends, kStart + 1800 * kSecond);
}

// Between the decision and the write it is nobody else's, and without a write it never was.
TEST(Sessions, WhatIsOnItsWayIsHeldInReserve) {
  Fleet fleet;
  ASSERT_EQ(fleet.claim(terms_of("s"), "one", kStart), std::nullopt);
  EXPECT_EQ(fleet.sessions.find(kNs, "s", kStart), nullptr);
  EXPECT_EQ(fleet.claim(terms_of("s"), "two", kStart), SessionRefusal::kOwnedByAnother);
  EXPECT_EQ(fleet.sessions.free_slots(kNs, "one", kStart), 1);
  fleet.sessions.cancel(kNs, "s");
  EXPECT_EQ(fleet.sessions.size(), 0U);
  EXPECT_EQ(fleet.sessions.free_slots(kNs, "one", kStart), 2);
  EXPECT_EQ(fleet.claim(terms_of("s"), "two", kStart), std::nullopt);
}

TEST(Sessions, CountsItsActivitiesAndAWorkersSessions) {
  Fleet fleet;
  auto terms = terms_of("s");
  terms.activities_max = 2;
  fleet.take(terms, "one", kStart);
  fleet.take(terms, "one", kStart);
  EXPECT_EQ(fleet.claim(terms, "one", kStart), SessionRefusal::kTooManyActivities);
  fleet.sessions.release(kNs, "s");
  EXPECT_EQ(fleet.claim(terms, "one", kStart), std::nullopt);
  fleet.take(terms_of("t"), "one", kStart);
  EXPECT_EQ(fleet.claim(terms_of("u"), "one", kStart), SessionRefusal::kTooManySessions);
  EXPECT_EQ(fleet.claim(terms_of("u"), "two", kStart), std::nullopt);
  EXPECT_EQ(fleet.sessions.close(kNs, "t", "one", kStart).refusal, std::nullopt);
  EXPECT_EQ(fleet.claim(terms_of("v"), "one", kStart), std::nullopt) << "closing frees the slot";
}

TEST(Sessions, AskForWhatTheirWorkerMustHave) {
  Fleet fleet;
  auto terms = terms_of("s");
  terms.requirements = {"gpu", "zone:b"};
  const auto answer = fleet.sessions.create(kNs, terms, "one", kStart);
  EXPECT_EQ(answer.refusal, SessionRefusal::kRequirements);
  EXPECT_EQ(answer.missing, std::vector<std::string>{"zone:b"});
  terms.requirements = {"gpu"};
  EXPECT_EQ(fleet.sessions.create(kNs, terms, "one", kStart).outcome, Sessions::Outcome::kCreated);
  EXPECT_EQ(fleet.sessions.create(kNs, terms, "one", kStart).outcome, Sessions::Outcome::kReused);
  terms.id = "t";
  terms.creates = false;
  EXPECT_EQ(fleet.claim(terms, "one", kStart), SessionRefusal::kMissing);
  EXPECT_EQ(fleet.claim(terms, "three", kStart), SessionRefusal::kWorkerUnknown);
}

TEST(Sessions, ALeaseThatNobodyRenewsIsTakenByAnother) {
  Fleet fleet;
  auto terms = terms_of("s");
  terms.lease_s = 10;
  terms.ttl_s = 40;
  fleet.take(terms, "one", kStart);
  ASSERT_EQ(fleet.sessions.renew(kNs, "s", "one", std::nullopt, kStart + 5 * kSecond).refusal,
            std::nullopt);
  EXPECT_EQ(fleet.sessions.renew(kNs, "s", "two", std::nullopt, kStart).refusal,
            SessionRefusal::kOwnerMismatch);
  TimeNs now = kStart + 15 * kSecond - 1;
  EXPECT_EQ(fleet.claim(terms, "two", now), SessionRefusal::kOwnedByAnother);
  now = kStart + 15 * kSecond;
  EXPECT_EQ(fleet.sessions.find(kNs, "s", now)->cause, Session::Cause::kLease);
  EXPECT_EQ(fleet.sessions.renew(kNs, "s", "one", std::nullopt, now).refusal,
            SessionRefusal::kNotActive);
  // The lost worker's attempt is not over yet, and one at a time may run.
  EXPECT_EQ(fleet.claim(terms, "two", now), SessionRefusal::kTooManyActivities);
  fleet.sessions.release(kNs, "s");
  const auto taken = fleet.sessions.claim(kNs, terms, "two", now);
  EXPECT_EQ(taken.refusal, std::nullopt);
  EXPECT_EQ(taken.outcome, Sessions::Outcome::kReacquired);
  fleet.sessions.start(kNs, terms, "two", now);
  EXPECT_EQ(fleet.sessions.find(kNs, "s", now)->owner, "two");
  EXPECT_EQ(fleet.sessions.find(kNs, "s", now)->ttl_ends, kStart + 40 * kSecond)
      << "a lifetime begins once";
  EXPECT_EQ(fleet.sessions.free_slots(kNs, "one", now), 2);
  EXPECT_EQ(fleet.sessions.free_slots(kNs, "two", now), 1);
}

TEST(Sessions, EndForGood) {
  Fleet fleet;
  auto terms = terms_of("ttl");
  terms.ttl_s = 20;
  fleet.take(terms, "one", kStart);
  fleet.sessions.release(kNs, "ttl");
  TimeNs now = kStart + 20 * kSecond;
  EXPECT_EQ(fleet.claim(terms, "one", now), SessionRefusal::kNotReacquired);
  fleet.take(terms_of("closed"), "one", now);
  fleet.sessions.release(kNs, "closed");
  EXPECT_EQ(fleet.sessions.close(kNs, "closed", "two", now).refusal,
            SessionRefusal::kOwnerMismatch);
  EXPECT_FALSE(fleet.sessions.close(kNs, "closed", "one", now).was_closed);
  EXPECT_TRUE(fleet.sessions.close(kNs, "closed", "one", now).was_closed);
  EXPECT_EQ(fleet.claim(terms_of("closed"), "one", now), SessionRefusal::kClosed);
  auto once = terms_of("once");
  once.reacquires = false;
  fleet.take(once, "one", now);
  fleet.sessions.release(kNs, "once");
  now += 300 * kSecond;
  fleet.hear(now);
  EXPECT_EQ(fleet.claim(once, "two", now), SessionRefusal::kNotReacquired);
  EXPECT_EQ(fleet.claim(terms_of("once"), "two", now), SessionRefusal::kNotReacquired)
      << "it says so itself";
  // What has ended for good is remembered for a day.
  EXPECT_TRUE(fleet.sessions.forget(now + kHour).empty());
  EXPECT_EQ(fleet.sessions.forget(now + 2 * kDay).size(), 3U);
  EXPECT_EQ(fleet.sessions.size(), 0U);
}

TEST(Sessions, AWorkerThatIsGoneLeavesOrphans) {
  Fleet fleet;
  fleet.take(terms_of("left"), "one", kStart);
  fleet.take(terms_of("silent"), "two", kStart);
  fleet.sessions.release(kNs, "left");
  EXPECT_EQ(fleet.sessions.remove_worker(kNs, "one", kStart), std::vector<std::string>{"left"});
  EXPECT_EQ(fleet.sessions.find(kNs, "left", kStart)->status, Session::Status::kOrphaned);
  EXPECT_EQ(fleet.claim(terms_of("left"), "two", kStart), std::nullopt);
  EXPECT_EQ(fleet.sessions.find(kNs, "silent", kStart + kMinute)->status,
            Session::Status::kOrphaned)
      << "nobody has heard of it";
}

TEST(Sessions, AreBounded) {
  Sessions sessions(2);
  sessions.put_worker(kNs, "one", {"q", "", {}, 10, kStart, kMinute});
  for (const char* id : {"a", "b"}) {
    EXPECT_EQ(sessions.create(kNs, terms_of(id), "one", kStart).refusal, std::nullopt);
  }
  EXPECT_EQ(sessions.create(kNs, terms_of("c"), "one", kStart).refusal, SessionRefusal::kFull);
  EXPECT_EQ(sessions.forget_namespace(kNs).size(), 2U);
  EXPECT_EQ(sessions.size(), 0U);
}

TEST(Sessions, ComeBackWithWhatWorkersHave) {
  Fleet before;
  before.take(terms_of("s"), "one", kStart);
  Fleet after;
  after.sessions.restore(kNs, *before.sessions.find(kNs, "s", kStart));
  EXPECT_EQ(after.sessions.find(kNs, "s", kStart)->running, 0);
  after.sessions.restore_running(kNs, "s");
  EXPECT_EQ(after.claim(terms_of("s"), "one", kStart), SessionRefusal::kTooManyActivities);
  EXPECT_EQ(after.sessions.free_slots(kNs, "one", kStart), 1);
}

// These bytes are in the keys of rows.
TEST(SessionStream, HasItsGoldenBytes) {
  SessionTerms terms = terms_of("render");
  EXPECT_EQ(session_stream("", terms),
            "\x1fsession\x1frender\x1f\x1f"
            "120\x1f"
            "1800\x1f"
            "1\x1f"
            "cr");
  terms = {"render", {"gpu", "zone:b"}, 10, 20, 3, false, true};
  const auto stream = session_stream(
      "v\x1f"
      "2",
      terms);
  EXPECT_EQ(stream,
            "\x1fsession\x1frender\x1fv\\x1f\\x32\x1f"
            "10\x1f"
            "20\x1f"
            "3\x1fr\x1fgpu\x1fzone:b");
  EXPECT_TRUE(is_session_stream(stream));
  EXPECT_FALSE(is_session_stream("v1"));
  EXPECT_EQ(parse_session_stream(stream)->terms, terms);
  EXPECT_EQ(parse_session_stream(stream)->build,
            "v\x1f"
            "2");
  for (const char* other : {"v1", "\x1fsession\x1f",
                            "\x1fsession\x1f"
                            "a\x1f\x1fx\x1fy\x1fz\x1f"}) {
    EXPECT_FALSE(parse_session_stream(other).has_value());
  }
}

}  // namespace
}  // namespace fairlead::admission
