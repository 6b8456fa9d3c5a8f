#include <limits>
#include <optional>

#include "api/temporal/answers.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/wire.h"

// Tokens travel through clients' hands and come back from their databases years later, so their
// format is kept like a format on disk: DO NOT CHANGE the meaning of a field. New fields may be
// added; old servers pass over them.
//
//   version  kind  fields in protobuf's wire format  checksum
//   1 byte   1     …                                 4, little-endian
//
// The checksum finds tokens that were cut or mangled on their way. It is no secret and proves
// nothing about who made the token: what a caller may touch is checked against the caller, not the
// token.
namespace fairlead::api {

namespace {

constexpr char kVersion = 1;
constexpr char kTask = 't';
constexpr char kQuery = 'q';
constexpr char kHistory = 'h';
constexpr char kChange = 'c';
constexpr size_t kHeaderBytes = 2;
constexpr size_t kChecksumBytes = 4;

std::string checksum(std::string_view bytes) {
  const auto hash = static_cast<uint32_t>(stable_hash(bytes) >> 32);
  std::string out;
  for (size_t i = 0; i < kChecksumBytes; ++i) out.push_back(static_cast<char>(hash >> (8 * i)));
  return out;
}

template <typename Fill>
std::string seal(char kind, Fill&& fill) {
  std::string bytes{kVersion, kind};
  wire::Writer writer(&bytes);
  fill(writer);
  return bytes + checksum(bytes);
}

// The fields of a token of that kind, or nothing when it is not one.
std::optional<std::string_view> unseal(char kind, std::string_view bytes) {
  if (bytes.size() < kHeaderBytes + kChecksumBytes) return std::nullopt;
  if (bytes[0] != kVersion || bytes[1] != kind) return std::nullopt;
  const auto sealed = bytes.substr(0, bytes.size() - kChecksumBytes);
  if (bytes.substr(sealed.size()) != checksum(sealed)) return std::nullopt;
  return sealed.substr(kHeaderBytes);
}

// Ids and attempts count up from 0 or 1; anything that does not fit was never written by us.
template <typename T>
bool take(uint64_t number, T* value) {
  if (number > static_cast<uint64_t>(std::numeric_limits<T>::max())) return false;
  *value = static_cast<T>(number);
  return true;
}

bool read_task(std::string_view fields, shard::TaskToken* token) {
  wire::Reader reader(fields);
  uint32_t ns = 0;
  bool fits = true;
  while (fits && reader.next()) {
    switch (reader.field()) {
      case 1:
        fits = take(reader.number(), &ns);
        break;
      case 2:
        token->workflow_id = reader.bytes();
        break;
      case 3:
        token->run_id = reader.bytes();
        break;
      case 4:
        fits = take(reader.number(), &token->scheduled_id);
        break;
      case 5:
        fits = take(reader.number(), &token->started_id);
        break;
      case 6:
        fits = take(reader.number(), &token->attempt);
        break;
      case 7:
        fits = take(reader.number(), &token->started_ns);
        break;
      case 8:
        token->activity_id = reader.bytes();
        break;
      case 9:
        // This door hands out tasks of its own runs only.
        fits = reader.number() == model::STANDALONE;
        token->flavour = model::STANDALONE;
        break;
      default:
        break;
    }
  }
  token->ns = NamespaceNum(ns);
  return fits && reader.ok() && !token->workflow_id.empty();
}

bool read_query(std::string_view fields, QueryToken* token) {
  wire::Reader reader(fields);
  while (reader.next()) {
    if (reader.field() == 1) token->namespace_id = reader.bytes();
    if (reader.field() == 2) token->query_id = reader.bytes();
  }
  return reader.ok() && !token->query_id.empty();
}

bool read_history(std::string_view fields, HistoryToken* token) {
  wire::Reader reader(fields);
  token->next_event = 0;
  bool fits = true;
  while (fits && reader.next()) {
    if (reader.field() == 1) token->run_id = reader.bytes();
    if (reader.field() == 2) fits = take(reader.number(), &token->next_event);
    if (reader.field() == 3) token->is_open = reader.number() != 0;
  }
  return fits && reader.ok() && !token->run_id.empty();
}

bool read_change(std::string_view fields, ChangeToken* token) {
  wire::Reader reader(fields);
  bool fits = true;
  while (fits && reader.next()) {
    if (reader.field() == 1) token->run_id = reader.bytes();
    if (reader.field() == 2) fits = take(reader.number(), &token->transitions);
  }
  return fits && reader.ok() && !token->run_id.empty();
}

absl::Status bad_task_token() {
  return errors::invalid_argument("Error deserializing task token.");
}

}  // namespace

std::string encode_token(const shard::TaskToken& token) {
  return seal(kTask, [&](wire::Writer& writer) {
    writer.varint(1, token.ns.value());
    writer.string(2, token.workflow_id);
    writer.string(3, token.run_id);
    writer.integer(4, token.scheduled_id);
    writer.integer(5, token.started_id);
    writer.integer(6, token.attempt);
    writer.integer(7, token.started_ns);
    writer.string(8, token.activity_id);
    writer.integer(9, token.flavour);
  });
}

absl::StatusOr<shard::TaskToken> decode_token(std::string_view bytes) {
  const auto fields = unseal(kTask, bytes);
  shard::TaskToken token;
  if (!fields.has_value() || !read_task(*fields, &token)) return bad_task_token();
  return token;
}

std::string encode_query_token(std::string_view namespace_id, std::string_view query_id) {
  return seal(kQuery, [&](wire::Writer& writer) {
    writer.string(1, namespace_id);
    writer.string(2, query_id);
  });
}

absl::StatusOr<QueryToken> decode_query_token(std::string_view bytes) {
  const auto fields = unseal(kQuery, bytes);
  QueryToken token;
  if (!fields.has_value() || !read_query(*fields, &token)) return bad_task_token();
  return token;
}

std::string encode_history_token(const HistoryToken& token) {
  return seal(kHistory, [&](wire::Writer& writer) {
    writer.string(1, token.run_id);
    writer.integer(2, token.next_event);
    writer.boolean(3, token.is_open);
  });
}

absl::StatusOr<HistoryToken> decode_history_token(std::string_view bytes) {
  const auto fields = unseal(kHistory, bytes);
  HistoryToken token;
  if (!fields.has_value() || !read_history(*fields, &token)) {
    return errors::invalid_argument("Invalid NextPageToken.");
  }
  return token;
}

std::string encode_change_token(const ChangeToken& token) {
  return seal(kChange, [&](wire::Writer& writer) {
    writer.string(1, token.run_id);
    writer.integer(2, token.transitions);
  });
}

absl::StatusOr<ChangeToken> decode_change_token(std::string_view bytes) {
  const auto fields = unseal(kChange, bytes);
  ChangeToken token;
  if (!fields.has_value() || !read_change(*fields, &token)) {
    return errors::invalid_argument("invalid long poll token");
  }
  return token;
}

}  // namespace fairlead::api
