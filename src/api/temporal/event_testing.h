#pragma once

#include <string>

#include "api/temporal/codec.h"
#include "api/temporal/proto_testing.h"
#include "temporal/api/history/v1/message.pb.h"

namespace fairlead::api {

// Writes an engine event, given as text without id and time, and compares its attributes with the
// expected ones, given as the text of a HistoryEvent's attributes. So does what is read back.
inline void expect_event(const std::string& text, const std::string& door,
                         const std::string& expected_attributes) {
  SCOPED_TRACE(text);
  auto event = from_text<model::Event>(text);
  event.set_id(7);
  event.set_time_ns(90'000'000'005);
  event.set_door(door);
  std::string bytes;
  TemporalCodec().append_event(event, &bytes);

  using temporal::api::history::v1::History;
  auto expected = from_text<History>(
      "events { event_id: 7 event_time { seconds: 90 nanos: 5 } "
      "task_id: 7 " +
      expected_attributes + " }");
  expected.mutable_events(0)->set_event_type(
      static_cast<temporal::api::enums::v1::EventType>(event.kind()));
  expect_same(parse<History>(bytes), expected);

  // Read back and written again it is the same event.
  std::string again;
  TemporalCodec().append_event(TemporalCodec().read_event(bytes), &again);
  expect_same(parse<History>(again), expected);
}

}  // namespace fairlead::api
