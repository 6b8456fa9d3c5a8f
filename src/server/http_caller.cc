#include "server/http_caller.h"

#include <curl/curl.h>
#include <pthread.h>

#include <algorithm>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "api/temporal/callbacks.h"
#include "base/assert.h"

namespace fairlead::server {

namespace {

using history::CallbackOutcome;

constexpr int kPollMs = 1000;

struct FreeEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

CallbackOutcome failed(std::string why) { return {CallbackOutcome::Kind::kFailed, std::move(why)}; }

}  // namespace

struct HttpCaller::Multi {
  Multi() {
    FL_ASSERT(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK, "libcurl can be used");
    handle = curl_multi_init();
    FL_ASSERT(handle != nullptr, "libcurl can be used");
  }
  ~Multi() { curl_multi_cleanup(handle); }

  CURLM* handle = nullptr;
};

struct HttpCaller::Call {
  history::Outgoing request;
  TimeNs until = 0;
  Done done;
  std::unique_ptr<CURL, FreeEasy> easy;
  std::unique_ptr<curl_slist, FreeList> headers;
  std::string reason;
  char error[CURL_ERROR_SIZE] = "";

  void add_header(const std::string& line) {
    auto* longer = curl_slist_append(headers.get(), line.c_str());
    FL_ASSERT(longer != nullptr, "there is memory");
    (void)headers.release();
    headers.reset(longer);
  }

  // Of what comes back only the status line and one header are of interest.
  static size_t ignore(char*, size_t size, size_t count, void*) { return size * count; }
  static size_t read_header(char* data, size_t size, size_t count, void* self) {
    std::string line(data, size * count);
    if (line.starts_with("HTTP/")) {
      const auto status = line.find(' ');
      const auto reason = status == std::string::npos ? status : line.find(' ', status + 1);
      line = reason == std::string::npos ? "" : line.substr(reason);
      absl::StripAsciiWhitespace(&line);
      static_cast<Call*>(self)->reason = std::move(line);
    }
    return size * count;
  }

  void prepare(DurationNs time_left) {
    easy.reset(curl_easy_init());
    FL_ASSERT(easy != nullptr, "there is memory");
    CURL* const handle = easy.get();
    bool has_type = false;
    for (const auto& [name, value] : request.headers) {
      has_type = has_type || absl::EqualsIgnoreCase(name, "content-type");
      add_header(value.empty() ? absl::StrCat(name, ";") : absl::StrCat(name, ": ", value));
    }
    if (!has_type) add_header("Content-Type:");
    add_header("Expect:");
    curl_easy_setopt(handle, CURLOPT_PRIVATE, this);
    curl_easy_setopt(handle, CURLOPT_URL, request.url.c_str());
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(handle, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_POST, 1L);
    curl_easy_setopt(handle, CURLOPT_POSTFIELDS, request.body.data());
    curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS,
                     static_cast<long>(std::max<DurationNs>(time_left / kMillisecond, 1)));
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, ignore);
    curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, read_header);
    curl_easy_setopt(handle, CURLOPT_HEADERDATA, this);
    curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, error);
  }

  CallbackOutcome outcome(CURLcode code) const {
    if (code != CURLE_OK) return failed(error[0] != '\0' ? error : curl_easy_strerror(code));
    long status = 0;
    curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
    api::CallbackAnswer answer{static_cast<int>(status), reason, ""};
    curl_header* retryable = nullptr;
    if (curl_easy_header(easy.get(), "nexus-request-retryable", 0, CURLH_HEADER, -1, &retryable) ==
        CURLHE_OK) {
      answer.retryable = retryable->value;
    }
    return api::judge(answer);
  }
};

HttpCaller::HttpCaller(Clock* clock, Options options)
    : clock_(clock), options_(options), multi_(std::make_unique<Multi>()) {
  thread_ = std::thread([this] { run(); });
}

HttpCaller::~HttpCaller() { stop(); }

void HttpCaller::stop() {
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  curl_multi_wakeup(multi_->handle);
  if (thread_.joinable()) thread_.join();
}

void HttpCaller::call(history::Outgoing request, TimeNs until, Done done) {
  auto call = std::make_unique<Call>();
  call->request = std::move(request);
  call->until = until;
  call->done = std::move(done);
  {
    std::lock_guard lock(mutex_);
    if (is_stopping_) return;
    inbox_.push_back(std::move(call));
  }
  curl_multi_wakeup(multi_->handle);
}

void HttpCaller::run() {
  pthread_setname_np(pthread_self(), "fl-callbacks");
  while (true) {
    {
      std::lock_guard lock(mutex_);
      if (is_stopping_) break;
      for (auto& call : inbox_) waiting_.push_back(std::move(call));
      inbox_.clear();
    }
    while (waiting_.size() > options_.waiting_max) {
      waiting_.back()->done(failed("too many callbacks are under way"));
      waiting_.pop_back();
    }
    begin_waiting();
    int running = 0;
    curl_multi_perform(multi_->handle, &running);
    end_finished();
    if (!waiting_.empty() && under_way_.size() < options_.connections_max) continue;
    curl_multi_poll(multi_->handle, nullptr, 0, kPollMs, nullptr);
  }
  for (const auto& call : under_way_) {
    curl_multi_remove_handle(multi_->handle, call->easy.get());
  }
  under_way_.clear();
  waiting_.clear();
}

void HttpCaller::begin_waiting() {
  while (!waiting_.empty() && under_way_.size() < options_.connections_max) {
    auto call = std::move(waiting_.front());
    waiting_.pop_front();
    const DurationNs time_left = call->until - clock_->now();
    if (time_left <= 0) {
      call->done(failed("no connection was free in time"));
      continue;
    }
    call->prepare(time_left);
    FL_ASSERT(curl_multi_add_handle(multi_->handle, call->easy.get()) == CURLM_OK,
              "a new request can be made");
    under_way_.push_back(std::move(call));
  }
}

void HttpCaller::end_finished() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_->handle, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    Call* call = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &call);
    auto outcome = call->outcome(message->data.result);
    curl_multi_remove_handle(multi_->handle, call->easy.get());
    call->done(std::move(outcome));
    std::erase_if(under_way_, [&](const auto& one) { return one.get() == call; });
  }
}

}  // namespace fairlead::server
