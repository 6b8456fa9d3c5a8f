#include "api/temporal/http2_connection.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/temporal/http2_headers.h"
#include "base/assert.h"

namespace fairlead::api {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// As gRPC's servers: polls are calls that stay, and a fleet's worth may share a connection.
constexpr uint32_t kStreamsMax = 1 << 20;
// Tokens in `authorization` can be long.
constexpr size_t kHeaderBytesMax = 64 << 10;
// A request of the usual size needs no second round; a hostile crowd can send so much each.
constexpr int32_t kStreamWindow = 256 << 10;
constexpr int32_t kConnectionWindow = 4 << 20;
// A worker that stops cancels all its polls at once, and is not an attacker for that.
constexpr uint64_t kResetsAtOnce = 100'000;
constexpr uint64_t kResetsPerSecond = 10'000;
// What is gathered for one write, and what a connection may keep for the next.
constexpr size_t kWriteBytes = 256 << 10;
constexpr size_t kIdleOutBytes = 64 << 10;
constexpr DurationNs kGreetingTimeout = 20 * kSecond;
constexpr DurationNs kGoodbyeTimeout = 5 * kSecond;

std::string_view as_text(const uint8_t* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

// The wire's side of one call.
struct Http2Connection::Stream {
  Stream(int32_t its_id, size_t message_bytes_max) : id(its_id), reader(message_bytes_max) {}

  const int32_t id;
  // From the headers; cleared when the call is opened.
  std::string method;
  std::string path;
  std::string content_type;
  RequestHeaders headers;
  size_t header_bytes = 0;
  TimeNs deadline = kNever;

  const GrpcRoute* route = nullptr;
  MessageReader reader;
  std::shared_ptr<Http2Call> call;
  size_t unread_bytes = 0;  // that the client may not send again yet
  bool is_refused = false;  // nothing that comes is looked at
  bool is_encoding_known = true;
  bool is_half_closed = false;  // the client has said all it will say
  bool is_half_close_told = false;

  bool has_messages() const { return sent_messages < out.messages.size(); }

  Outgoing out;
  size_t sent_messages = 0;  // of out.messages
  size_t sent_bytes = 0;     // of the one after those, its prefix included
  bool is_answering = false;
  bool is_waiting = false;  // the library asked for bytes when there were none
  bool is_ended = false;    // the last frame has been made
};

// nghttp2's callbacks. They run inside its functions and must not call those that send or receive.
struct Http2Connection::Callbacks {
  static Http2Connection* self(void* user) { return static_cast<Http2Connection*>(user); }
  static Stream* stream_of(nghttp2_session* session, int32_t id) {
    return static_cast<Stream*>(nghttp2_session_get_stream_user_data(session, id));
  }

  static int on_begin_headers(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    auto stream =
        std::make_unique<Stream>(frame->hd.stream_id, self(user)->settings_.receive_bytes_max);
    nghttp2_session_set_stream_user_data(session, stream->id, stream.get());
    self(user)->keeper_->on_call_opened();
    self(user)->streams_.insert_or_assign(stream->id, std::move(stream));
    return 0;
  }

  static int on_header(nghttp2_session* session, const nghttp2_frame* frame, const uint8_t* name,
                       size_t name_size, const uint8_t* value, size_t value_size, uint8_t,
                       void* user) {
    Stream* stream = stream_of(session, frame->hd.stream_id);
    if (stream == nullptr || stream->call != nullptr) return 0;
    stream->header_bytes += name_size + value_size + 32;
    if (stream->header_bytes > kHeaderBytesMax) return 0;
    self(user)->read_header(stream, as_text(name, name_size), as_text(value, value_size));
    return 0;
  }

  static int on_frame(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type == NGHTTP2_SETTINGS) self(user)->is_greeted_ = true;
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
    Stream* stream = stream_of(session, frame->hd.stream_id);
    if (stream == nullptr) return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && stream->call == nullptr && !stream->is_refused) {
      self(user)->open(stream);
    }
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) stream->is_half_closed = true;
    self(user)->hear(stream);
    return 0;
  }

  static int on_data(nghttp2_session* session, uint8_t, int32_t id, const uint8_t* bytes,
                     size_t size, void* user) {
    nghttp2_session_consume_connection(session, size);
    Stream* stream = stream_of(session, id);
    if (stream == nullptr || stream->call == nullptr || stream->is_refused) {
      nghttp2_session_consume_stream(session, id, size);
      return 0;
    }
    stream->reader.append(as_text(bytes, size));
    stream->unread_bytes += size;
    self(user)->hear(stream);
    return 0;
  }

  static int on_frame_sent(nghttp2_session* session, const nghttp2_frame* frame, void*) {
    if (frame->hd.type != NGHTTP2_HEADERS || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) {
      return 0;
    }
    Stream* stream = stream_of(session, frame->hd.stream_id);
    if (stream == nullptr) return 0;
    stream->is_ended = true;
    // Our last word, whether or not it is the client's.
    if (!stream->is_half_closed) {
      nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_NO_ERROR);
    }
    return 0;
  }

  static int on_stream_closed(nghttp2_session* session, int32_t id, uint32_t, void* user) {
    if (Stream* stream = stream_of(session, id)) self(user)->on_stream_closed(stream);
    return 0;
  }

  static ssize_t fill(nghttp2_session*, int32_t, uint8_t* out, size_t room, uint32_t* flags,
                      nghttp2_data_source* source, void* user) {
    return self(user)->fill(static_cast<Stream*>(source->ptr), out, room, flags);
  }

  static nghttp2_session* make_session(Http2Connection* connection) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_closed);
    nghttp2_option* option = nullptr;
    nghttp2_option_new(&option);
    // A call that is not listened to keeps its client from sending more.
    nghttp2_option_set_no_auto_window_update(option, 1);
    // Kept for priorities between streams, of which gRPC has none.
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_stream_reset_rate_limit(option, kResetsAtOnce, kResetsPerSecond);
    nghttp2_session* session = nullptr;
    nghttp2_session_server_new2(&session, callbacks, connection, option);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    FL_ASSERT(session != nullptr, "out of memory");
    return session;
  }
};

Http2Connection::Http2Connection(const Http2Settings& settings, Http2Keeper* keeper,
                                 tcp::socket socket, TimeNs now)
    : settings_(settings),
      keeper_(keeper),
      socket_(std::move(socket)),
      session_(Callbacks::make_session(this)),
      now_(now),
      opened_at_(now) {}

Http2Connection::~Http2Connection() { nghttp2_session_del(session_); }

void Http2Connection::start() {
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.set_option(asio::socket_base::keep_alive(true), ignored);
  const nghttp2_settings_entry entries[] = {
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, kStreamsMax},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, kHeaderBytesMax},
  };
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, entries, std::size(entries));
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kConnectionWindow);
  flush();
  read();
}

void Http2Connection::read() {
  if (is_closed_) return;
  socket_.async_read_some(
      asio::buffer(in_), [self = shared_from_this()](error_code error, size_t size) {
        if (self->is_closed_) return;
        if (error) return self->close();
        if (!self->is_terminated_) {
          {
            // Answers that are given at once wait for the end of this read.
            const std::lock_guard lock(self->mutex_);
            self->is_woken_ = true;
          }
          self->now_ = SystemClock().now();
          const ssize_t used = nghttp2_session_mem_recv(
              self->session_, reinterpret_cast<const uint8_t*>(self->in_.data()), size);
          if (used < 0) return self->close();
          self->drain();
        }
        self->read();
      });
}

void Http2Connection::wake(std::shared_ptr<Http2Call> call) {
  {
    const std::lock_guard lock(mutex_);
    ready_.push_back(std::move(call));
    if (std::exchange(is_woken_, true)) return;
  }
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->drain(); });
}

void Http2Connection::drain() {
  std::vector<std::shared_ptr<Http2Call>> ready;
  {
    const std::lock_guard lock(mutex_);
    is_woken_ = false;
    ready.swap(ready_);
  }
  if (is_closed_) return;
  for (const auto& call : ready) {
    if (Stream* stream = find(call->stream_id())) send(stream, call->take());
  }
  flush();
}

Http2Connection::Stream* Http2Connection::find(int32_t stream_id) {
  const auto found = streams_.find(stream_id);
  return found == streams_.end() ? nullptr : found->second.get();
}

void Http2Connection::read_header(Stream* stream, std::string_view name, std::string_view value) {
  if (name == ":path") {
    stream->path = value;
  } else if (name == ":method") {
    stream->method = value;
  } else if (name == "content-type") {
    stream->content_type = value;
  } else if (name == "grpc-timeout") {
    if (const auto timeout = parse_grpc_timeout(value)) {
      stream->deadline = add_saturated(now_, *timeout);
    }
  } else if (name == "grpc-encoding") {
    stream->is_encoding_known = stream->reader.set_encoding(value);
  } else if (name.front() != ':') {
    stream->headers.add(name, value);
  }
}

void Http2Connection::open(Stream* stream) {
  const auto refuse = [&](int code, std::string text) {
    stream->is_refused = true;
    send(stream, {{}, RpcStatus{code, std::move(text), ""}});
  };
  if (stream->method != "POST") return refuse_http(stream, "405");
  if (!stream->content_type.starts_with("application/grpc")) return refuse_http(stream, "415");
  if (stream->header_bytes > kHeaderBytesMax) {
    return refuse(kResourceExhausted, absl::StrCat("the call's headers have ", stream->header_bytes,
                                                   " bytes; ", kHeaderBytesMax, " are allowed"));
  }
  const auto found = settings_.routes.find(stream->path);
  if (found == settings_.routes.end()) {
    return refuse(kUnimplemented, unknown_method_text(stream->path));
  }
  if (!stream->is_encoding_known) {
    return refuse(kUnimplemented,
                  "the request's grpc-encoding is not one of identity, gzip, deflate");
  }
  const GrpcRoute& route = *found->second;
  stream->route = &route;
  stream->call =
      route.handler != nullptr
          ? make_unary_call(this, stream->id, route, std::move(stream->headers), stream->deadline)
          : make_stream_call(this, stream->id, route);
  stream->path = {};
  stream->content_type = {};
  stream->headers = {};
}

void Http2Connection::hear(Stream* stream) {
  if (stream->call == nullptr || stream->is_refused) return;
  Http2Call& call = *stream->call;
  std::optional<RpcStatus> error;
  while (!stream->has_messages() && call.wants_message()) {
    std::optional<GrpcMessage> message = stream->reader.next(&error);
    if (!message.has_value()) break;
    call.on_message(std::move(*message));
  }
  if (error.has_value()) {
    stream->is_refused = true;
    send(stream, {{}, std::move(error)});
    return;
  }
  // A message that grows must be able to arrive; one that has to wait holds up the client.
  if (call.wants_message() || !stream->reader.has_rest()) {
    nghttp2_session_consume_stream(session_, stream->id, std::exchange(stream->unread_bytes, 0));
    if (stream->is_half_closed && !std::exchange(stream->is_half_close_told, true)) {
      call.on_half_close();
    }
  }
}

void Http2Connection::send(Stream* stream, Outgoing outgoing) {
  if (stream->out.messages.empty()) {
    stream->out.messages = std::move(outgoing.messages);
  } else {
    std::move(outgoing.messages.begin(), outgoing.messages.end(),
              std::back_inserter(stream->out.messages));
  }
  if (outgoing.status.has_value()) {
    if (settings_.refusals != nullptr && stream->route != nullptr) {
      settings_.refusals->count(stream->route->method, *outgoing.status);
    }
    stream->out.status = std::move(outgoing.status);
  }
  if (stream->is_answering) {
    if (std::exchange(stream->is_waiting, false)) {
      nghttp2_session_resume_data(session_, stream->id);
    }
    return;
  }
  std::vector<nghttp2_nv> headers = {constant_header(":status", "200"),
                                     constant_header("content-type", "application/grpc")};
  if (stream->out.messages.empty() && stream->out.status.has_value()) {
    const StatusHeaders status(*stream->out.status);
    status.append_to(&headers);
    nghttp2_submit_response(session_, stream->id, headers.data(), headers.size(), nullptr);
  } else if (!stream->out.messages.empty()) {
    nghttp2_data_provider provider;
    provider.source.ptr = stream;
    provider.read_callback = Callbacks::fill;
    nghttp2_submit_response(session_, stream->id, headers.data(), headers.size(), &provider);
  } else {
    return;
  }
  stream->is_answering = true;
}

void Http2Connection::refuse_http(Stream* stream, std::string_view http_status) {
  stream->is_refused = true;
  stream->is_answering = true;
  const nghttp2_nv headers[] = {constant_header(":status", http_status)};
  nghttp2_submit_response(session_, stream->id, headers, std::size(headers), nullptr);
}

ssize_t Http2Connection::fill(Stream* stream, uint8_t* out, size_t room, uint32_t* flags) {
  size_t filled = 0;
  while (filled < room && stream->has_messages()) {
    const std::string& message = stream->out.messages[stream->sent_messages];
    const MessagePrefix prefix(message.size());
    size_t& sent = stream->sent_bytes;
    const std::string_view rest =
        sent < kMessagePrefixBytes
            ? std::string_view(prefix.bytes, kMessagePrefixBytes).substr(sent)
            : std::string_view(message).substr(sent - kMessagePrefixBytes);
    const size_t size = std::min(rest.size(), room - filled);
    std::memcpy(out + filled, rest.data(), size);
    filled += size;
    sent += size;
    if (sent == kMessagePrefixBytes + message.size()) {
      ++stream->sent_messages;
      sent = 0;
    }
  }
  if (stream->has_messages()) return static_cast<ssize_t>(filled);
  stream->out.messages.clear();
  stream->sent_messages = 0;
  if (stream->out.status.has_value()) {
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    submit_trailers(stream);
    return static_cast<ssize_t>(filled);
  }
  emptied_.push_back(stream->id);
  if (filled > 0) return static_cast<ssize_t>(filled);
  stream->is_waiting = true;
  return NGHTTP2_ERR_DEFERRED;
}

void Http2Connection::submit_trailers(Stream* stream) {
  std::vector<nghttp2_nv> headers;
  const StatusHeaders status(*stream->out.status);
  status.append_to(&headers);
  nghttp2_submit_trailer(session_, stream->id, headers.data(), headers.size());
}

void Http2Connection::on_stream_closed(Stream* stream) {
  const auto owned = std::move(streams_.extract(stream->id).mapped());
  keeper_->on_call_ended();
  if (stream->call == nullptr) return;
  if (stream->is_ended && stream->call->wants_outcome()) {
    serialised_.push_back(std::move(stream->call));
  } else {
    stream->call->on_end(stream->is_ended);
  }
}

void Http2Connection::flush() {
  if (is_writing_ || is_closed_ || is_terminated_) return;
  out_.clear();
  while (out_.size() < kWriteBytes) {
    const uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
    if (size < 0) return close();
    if (size == 0 && !emptied_.empty()) {
      for (const int32_t id : std::exchange(emptied_, {})) {
        if (Stream* stream = find(id)) hear(stream);
      }
      continue;
    }
    if (size == 0) {
      if (!is_leaving_ || !streams_.empty()) break;
      // Nothing is left to be done here.
      is_leaving_ = false;
      nghttp2_session_terminate_session(session_, NGHTTP2_NO_ERROR);
      continue;
    }
    out_.append(as_text(bytes, static_cast<size_t>(size)));
  }
  if (out_.empty()) {
    if (nghttp2_session_want_read(session_) != 0 || nghttp2_session_want_write(session_) != 0) {
      return;
    }
    // The client's part of the goodbye ends the reading.
    is_terminated_ = true;
    terminated_at_ = now_;
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    return;
  }
  is_writing_ = true;
  written_.swap(serialised_);
  asio::async_write(socket_, asio::buffer(out_),
                    [self = shared_from_this()](error_code error, size_t) {
                      if (!self->is_closed_) self->on_written(!error);
                    });
}

void Http2Connection::on_written(bool is_ok) {
  is_writing_ = false;
  if (!is_ok) return close();
  for (const auto& call : std::exchange(written_, {})) call->on_end(true);
  if (out_.capacity() > kIdleOutBytes) std::string().swap(out_);
  flush();
}

void Http2Connection::tick(TimeNs now) {
  now_ = now;
  if (!is_greeted_ && now - opened_at_ > kGreetingTimeout) return close();
  if (is_terminated_ && now - terminated_at_ > kGoodbyeTimeout) return close();
  bool is_any_late = false;
  for (const auto& [id, stream] : streams_) {
    if (stream->deadline > now || stream->is_ended) continue;
    stream->deadline = kNever;
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
    is_any_late = true;
  }
  if (is_any_late) flush();
}

void Http2Connection::leave() {
  if (is_closed_) return;
  is_leaving_ = true;
  nghttp2_submit_shutdown_notice(session_);
  flush();
}

void Http2Connection::cancel() {
  if (is_closed_) return;
  for (const auto& [id, stream] : streams_) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
  }
  is_leaving_ = true;
  flush();
}

void Http2Connection::close() {
  if (std::exchange(is_closed_, true)) return;
  const auto self = shared_from_this();
  error_code ignored;
  socket_.close(ignored);
  for (auto& [id, stream] : std::exchange(streams_, {})) {
    keeper_->on_call_ended();
    if (stream->call != nullptr) stream->call->on_end(false);
  }
  for (const auto* calls : {&written_, &serialised_}) {
    for (const auto& call : *calls) call->on_end(false);
  }
  written_.clear();
  serialised_.clear();
  keeper_->on_connection_closed(this);
}

}  // namespace fairlead::api
