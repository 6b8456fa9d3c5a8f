#include "api/fairlead/words.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/assert.h"

namespace fairlead::api::queues {

namespace {

constexpr std::string_view kUnspecified = "UNSPECIFIED";

// Two units, of which the smaller is left out when there is none of it.
std::string in_parts(DurationNs duration, DurationNs large, const char* large_name,
                     DurationNs small, const char* small_name) {
  std::string text = absl::StrCat(duration / large, " ", large_name);
  const DurationNs rest = duration % large / small;
  if (rest > 0) absl::StrAppend(&text, " ", rest, " ", small_name);
  return text;
}

}  // namespace

std::string human_duration(DurationNs duration) {
  if (duration <= 0) return "0 s";
  if (duration < kMillisecond) return "1 ms";
  if (duration < 100 * kMillisecond) return absl::StrCat(duration / kMillisecond, " ms");
  if (duration < 10 * kSecond) {
    const DurationNs tenths = duration / (100 * kMillisecond);
    if (tenths % 10 == 0) return absl::StrCat(tenths / 10, " s");
    return absl::StrCat(tenths / 10, ".", tenths % 10, " s");
  }
  if (duration < kMinute) return absl::StrCat(duration / kSecond, " s");
  if (duration < kHour) return in_parts(duration, kMinute, "min", kSecond, "s");
  if (duration < kDay) return in_parts(duration, kHour, "h", kMinute, "min");
  return in_parts(duration, kDay, "d", kHour, "h");
}

std::string word_of(const google::protobuf::EnumValueDescriptor& value) {
  const std::string& first = value.type()->value(0)->name();
  FL_ASSERT(std::string_view(first).ends_with(kUnspecified), "an enum begins with UNSPECIFIED");
  const std::string word = value.name().substr(first.size() - kUnspecified.size());
  return absl::StrReplaceAll(absl::AsciiStrToLower(word), {{"_", "-"}});
}

std::optional<int> number_of_word(const google::protobuf::EnumDescriptor& type,
                                  std::string_view word) {
  for (int i = 1; i < type.value_count(); ++i) {
    if (word_of(*type.value(i)) == word) return type.value(i)->number();
  }
  return std::nullopt;
}

std::string count_of(int64_t number, std::string_view singular) {
  return absl::StrCat(number, " ", absl::string_view(singular.data(), singular.size()),
                      number == 1 ? "" : "s");
}

}  // namespace fairlead::api::queues
