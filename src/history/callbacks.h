#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "history/transaction.h"

// Who wants to hear how a chain of runs ended.
//
//   standby ──► scheduled ──► succeeded          standby while the run is open, and for ever if
//                ▲     │ └──► failed             another run goes on in its place: that one has
//                └─────┘                         callbacks of its own, the same
//              backing off
//
// A callback that is scheduled is under way. It is told when it must have ended: if nobody says
// how, because the server was not there, it is tried again.
namespace fairlead::history {

// How an attempt ended, as far as its sender knows.
struct CallbackOutcome {
  enum class Kind { kDelivered, kFailed, kRefused } kind = Kind::kDelivered;  // refused: for good
  std::string failure;
};

// Gives a run that begins its callbacks.
void begin_callbacks(Transaction& tx, const std::vector<std::string>& callbacks);
// Those that the run that goes on in this one's place has to have.
std::vector<std::string> inherited_callbacks(const Run& run, model::Initiator initiator);

// What a start that found the run open leaves with it. OK also if it was there before.
struct Attachment {
  std::string request_id;  // empty: is not remembered
  std::vector<std::string> callbacks;
  std::string door;
  std::string envelope;
};
absl::Status attach(Transaction& tx, Attachment attachment);
// An event with an attachment has got its id.
void note_attached(Transaction& tx, const model::Event& event);

// The chain has ended: everybody is called.
void fire_callbacks(Transaction& tx);
// Calls those whose time has come.
void pass_callback_time(Transaction& tx);
// When the next one's time comes.
TimeNs callback_deadline(const Run& run);
// An attempt has ended. An answer that comes too late changes nothing.
bool awaits_callback(const Run& run, int64_t number, int32_t attempts);
void end_callback(Transaction& tx, int64_t number, const CallbackOutcome& outcome);

}  // namespace fairlead::history
