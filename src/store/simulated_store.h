#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/random.h"
#include "store/image.h"
#include "store/store.h"

namespace fairlead::store {

// A store on an imaginary disk that can lose power, for deterministic simulation. One thread only.
//
//   durable image        what a sync has made safe
//   log of bytes         frames of the batches written since; the disk owes us nothing of it
//   visible image        both together: what reads see
//
// A crash damages the log as a disk might, and recovery reads what is left of it, frame by frame.
// So a torn write is really torn, at a byte, and it is the frames' checksum that has to notice.
class SimulatedStore final : public Store {
 public:
  absl::StatusOr<std::optional<std::string>> get(std::string_view key) const override;
  absl::Status scan(std::string_view begin, std::string_view end,
                    const Visit& visit) const override;
  absl::Status scan_reverse(std::string_view begin, std::string_view end,
                            const Visit& visit) const override;
  absl::Status write(const WriteBatch& batch) override;
  absl::Status sync() override;

  // Power goes and comes back: of the batches that were not synced a random prefix survives, from
  // none to all. An injected failure ends here too, as it would with a restarted process. Returns
  // how many batches are lost.
  uint64_t crash(Random& random);

  // The next sync fails; from then on the store refuses everything until `crash`.
  void fail_next_sync() { fail_next_sync_ = true; }
  // `writes` more writes succeed; the one after them fails, and is final likewise.
  void fail_after(uint64_t writes) { writes_until_failure_ = writes; }

  // How many batches a crash could lose now.
  uint64_t unsynced_batches() const { return unsynced_batches_; }

 private:
  void damage_log(Random& random);
  uint64_t replay_log(Image* image) const;
  absl::Status fail(std::string_view what);

  Image durable_;
  std::string log_;
  Image visible_;
  uint64_t unsynced_batches_ = 0;

  bool fail_next_sync_ = false;
  std::optional<uint64_t> writes_until_failure_;
  absl::Status failure_;
};

}  // namespace fairlead::store
