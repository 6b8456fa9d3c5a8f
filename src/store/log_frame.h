#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "store/store.h"

// Batches as bytes in an append-only log that may end anywhere.
//
//   frame    checksum:4 length:4 payload
//   payload  one after another: kind:1 key_length:4 key value_length:4 value
//
// Integers are big-endian. The checksum covers length and payload, and starts from a value that
// makes a frame of zeros a bad one: zeros are what a file holds where its data never arrived.
namespace fairlead::store {

void append_frame(const WriteBatch& batch, std::string* log);

// Takes the frame at the front of `log`. Nothing at the end of the log, and at the first frame that
// is torn or damaged; `log` then stays there, and nothing behind it may be used.
std::optional<WriteBatch> take_frame(std::string_view* log);

}  // namespace fairlead::store
