#include "server/task_queue_commands.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/fairlead/task_queue_service.h"
#include "api/fairlead/words.h"
#include "server/json.h"
#include "server/table.h"
#include "server/task_queue_flags.h"
#include "server/task_queue_text.h"

namespace fairlead::server {

namespace {

constexpr int kPage = 1'000;

// A command: `add_flags` puts its own flags beside the common ones, `check` is called when the line
// has been parsed and may still refuse it, `act` does the work.
class Command {
 public:
  Command(CommandRun* run, const Desk& desk) : desk_(desk), run_(run) {}
  virtual ~Command() = default;

  static void add(std::shared_ptr<Command> command, CLI::App* parent, const std::string& name,
                  const std::string& help) {
    auto* app = parent->add_subcommand(name, help);
    command->add_flags(app);
    command->common.add_to(app);
    app->callback([command, app] {
      command->check(app);
      *command->run_ = [command] { return command->run(); };
    });
  }

 protected:
  virtual void add_flags(CLI::App* app) = 0;
  virtual void check(CLI::App*) {}
  virtual absl::Status act() = 0;

  // One call. The method is named after its request.
  template <typename Response, typename Request>
  absl::StatusOr<Response> ask(const Request& request) const {
    std::string method =
        absl::StrCat("/", api::kTaskQueueService, "/", Request::descriptor()->name());
    method.resize(method.size() - std::string_view("Request").size());
    const auto timeout = static_cast<DurationNs>(common.timeout_s * kSecond);
    auto body = desk_.ask(common.address, timeout, method, request.SerializeAsString());
    if (!body.ok()) return body.status();
    Response response;
    if (!response.ParseFromString(*body)) {
      return absl::InternalError(absl::StrCat("the answer to ", method, " is malformed"));
    }
    return response;
  }

  absl::Status print(const google::protobuf::Message& answer, const std::string& text) const {
    *desk_.out << (common.is_json ? to_json(answer) : text);
    return absl::OkStatus();
  }

  void warn(const std::vector<std::string>& warnings) const {
    for (const auto& warning : warnings) *desk_.errors << "fairlead: warning: " << warning << "\n";
  }

  CommonFlags common;
  const Desk desk_;

 private:
  int run() {
    const absl::Status status = act();
    if (status.ok()) return 0;
    *desk_.errors << "fairlead: " << absl::StatusCodeToString(status.code()) << ": "
                  << printable({status.message().data(), status.message().size()}) << "\n";
    return 1;
  }

  CommandRun* run_;
};

// A command about one queue.
class QueueCommand : public Command {
 public:
  using Command::Command;

 protected:
  void add_flags(CLI::App* app) override { queue_flags.add_to(app); }
  v1::TaskQueue queue() const { return queue_flags.queue(common); }

  // Sends a change of a queue's rules and shows them as they are then.
  template <typename Response, typename Request>
  absl::Status change(const Request& request) const {
    const auto response = ask<Response>(request);
    if (!response.ok()) return response.status();
    return print(response->config(), show(response->config()));
  }

  QueueFlags queue_flags;

 private:
  static std::string show(const v1::TaskQueueConfig& config) { return config_text(config); }
  static std::string show(const v1::KeyConfig& config) { return key_config_text(config); }
};

// ---- looking
// -------------------------------------------------------------------------------------

class ListCommand final : public Command {
 public:
  using Command::Command;

 protected:
  void add_flags(CLI::App*) override {}
  absl::Status act() override {
    v1::ListTaskQueuesResponse all;
    v1::ListTaskQueuesRequest request;
    request.set_namespace_(common.namespace_name);
    request.set_page_size(kPage);
    do {
      const auto page = ask<v1::ListTaskQueuesResponse>(request);
      if (!page.ok()) return page.status();
      all.mutable_task_queues()->MergeFrom(page->task_queues());
      request.set_next_page_token(page->next_page_token());
    } while (!request.next_page_token().empty());
    return print(all, list_text(all));
  }
};

class DescribeCommand final : public QueueCommand {
 public:
  using QueueCommand::QueueCommand;

 protected:
  void add_flags(CLI::App* app) override {
    queue_flags.type = "workflow";
    QueueCommand::add_flags(app);
  }
  absl::Status act() override {
    v1::DescribeTaskQueueRequest request;
    *request.mutable_task_queue() = queue();
    const auto response = ask<v1::DescribeTaskQueueResponse>(request);
    if (!response.ok()) return response.status();
    return print(*response, description_text(*response));
  }
};

class ConfigGetCommand final : public QueueCommand {
 public:
  using QueueCommand::QueueCommand;

 protected:
  absl::Status act() override {
    v1::DescribeTaskQueueRequest request;
    *request.mutable_task_queue() = queue();
    const auto response = ask<v1::DescribeTaskQueueResponse>(request);
    if (!response.ok()) return response.status();
    return print(response->config(), config_text(response->config()));
  }
};

class KeysCommand final : public QueueCommand {
 public:
  using QueueCommand::QueueCommand;

 protected:
  void add_flags(CLI::App* app) override {
    QueueCommand::add_flags(app);
    app->add_option("--by", by_, "The longest backlogs first, or by name")
        ->check(CLI::IsMember({"backlog", "name"}).description(""))
        ->capture_default_str()
        ->type_name("backlog|name");
    app->add_option("--limit", limit_, "How many at most; by name, 0 shows all")
        ->check(CLI::Range(0, 10'000'000).description(""))
        ->capture_default_str()
        ->type_name("N");
    app->add_option("--key", keys_, "Only this key; may be repeated")
        ->type_name("KEY")
        ->allow_extra_args(false);
  }
  void check(CLI::App*) override {
    if (by_ == "backlog" && (limit_ == 0 || limit_ > kPage)) {
      throw CLI::ValidationError("--limit", absl::StrCat("by backlog it is 1 to ", kPage));
    }
  }
  absl::Status act() override {
    v1::ListKeysResponse all;
    v1::ListKeysRequest request;
    *request.mutable_task_queue() = queue();
    request.set_order(by_ == "name" ? v1::ListKeysRequest::ORDER_NAME
                                    : v1::ListKeysRequest::ORDER_BACKLOG);
    for (const auto& key : keys_) request.add_keys(key);
    do {
      const int left = limit_ - all.keys_size();
      request.set_page_size(limit_ == 0 ? kPage : std::min(left, kPage));
      const auto page = ask<v1::ListKeysResponse>(request);
      if (!page.ok()) return page.status();
      all.mutable_keys()->MergeFrom(page->keys());
      all.set_total(page->total());
      request.set_next_page_token(page->next_page_token());
    } while (!request.next_page_token().empty() && (limit_ == 0 || all.keys_size() < limit_));
    return print(all, keys_text(all));
  }

 private:
  std::string by_ = "backlog";
  int limit_ = 20;
  std::vector<std::string> keys_;
};

class ExplainCommand final : public Command {
 public:
  using Command::Command;

 protected:
  void add_flags(CLI::App* app) override {
    app->add_option("-w,--workflow-id", workflow_id_, "The workflow")->required()->type_name("ID");
    app->add_option("-r,--run-id", run_id_, "The run; the current one if none is named")
        ->type_name("ID");
    app->add_option("--activity-id", activity_id_,
                    "The activity; without it, the run's workflow task")
        ->type_name("ID");
  }
  absl::Status act() override {
    v1::ExplainRequest request;
    request.set_namespace_(common.namespace_name);
    request.set_workflow_id(workflow_id_);
    request.set_run_id(run_id_);
    request.set_activity_id(activity_id_);
    const auto response = ask<v1::ExplainResponse>(request);
    if (!response.ok()) return response.status();
    return print(*response, explanation_text(*response));
  }

 private:
  std::string workflow_id_;
  std::string run_id_;
  std::string activity_id_;
};

// ---- changing
// ------------------------------------------------------------------------------------

class ConfigSetCommand final : public QueueCommand {
 public:
  using QueueCommand::QueueCommand;

 protected:
  void add_flags(CLI::App* app) override {
    QueueCommand::add_flags(app);
    flags_.add_to(app);
  }
  void check(CLI::App*) override { request_ = flags_.request(&warnings_); }
  absl::Status act() override {
    warn(warnings_);
    *request_.mutable_task_queue() = queue();
    request_.set_identity(desk_.identity);
    return change<v1::SetTaskQueueResponse>(request_);
  }

 private:
  ConfigFlags flags_;
  v1::SetTaskQueueRequest request_;
  std::vector<std::string> warnings_;
};

class ConfigSetKeyCommand final : public QueueCommand {
 public:
  using QueueCommand::QueueCommand;

 protected:
  void add_flags(CLI::App* app) override {
    QueueCommand::add_flags(app);
    flags_.add_to(app);
  }
  void check(CLI::App*) override { request_ = flags_.request(&warnings_); }
  absl::Status act() override {
    warn(warnings_);
    *request_.mutable_task_queue() = queue();
    return change<v1::SetKeyResponse>(request_);
  }

 private:
  KeyConfigFlags flags_;
  v1::SetKeyRequest request_;
  std::vector<std::string> warnings_;
};

// A command about a queue, or with --key about one key of it.
class KeyCommand : public QueueCommand {
 public:
  using QueueCommand::QueueCommand;

 protected:
  void add_flags(CLI::App* app) override {
    QueueCommand::add_flags(app);
    key_option_ = add_key_flag(app, &key_);
  }
  bool has_key() const { return key_option_->count() > 0; }

  template <typename Request>
  Request request() const {
    Request request;
    *request.mutable_task_queue() = queue();
    if constexpr (requires { request.set_key(key_); }) request.set_key(key_);
    return request;
  }

  CLI::Option* key_option_ = nullptr;
  std::string key_;
};

class PauseCommand final : public KeyCommand {
 public:
  using KeyCommand::KeyCommand;

 protected:
  void add_flags(CLI::App* app) override {
    KeyCommand::add_flags(app);
    app->add_option("--reason", reason_, "Why")->type_name("TEXT");
  }
  absl::Status act() override {
    if (has_key()) return pause<v1::PauseKeyResponse>(request<v1::PauseKeyRequest>());
    return pause<v1::PauseTaskQueueResponse>(request<v1::PauseTaskQueueRequest>());
  }

 private:
  template <typename Response, typename Request>
  absl::Status pause(Request request) const {
    request.set_reason(reason_);
    request.set_identity(desk_.identity);
    return change<Response>(request);
  }

  std::string reason_;
};

class ResumeCommand final : public KeyCommand {
 public:
  using KeyCommand::KeyCommand;

 protected:
  absl::Status act() override {
    if (has_key()) return change<v1::ResumeKeyResponse>(request<v1::ResumeKeyRequest>());
    return change<v1::ResumeTaskQueueResponse>(request<v1::ResumeTaskQueueRequest>());
  }
};

class DrainCommand final : public KeyCommand {
 public:
  using KeyCommand::KeyCommand;

 protected:
  void add_flags(CLI::App* app) override {
    KeyCommand::add_flags(app);
    key_option_->required();
  }
  absl::Status act() override {
    return change<v1::DrainKeyResponse>(request<v1::DrainKeyRequest>());
  }
};

class PurgeCommand final : public KeyCommand {
 public:
  using KeyCommand::KeyCommand;

 protected:
  void add_flags(CLI::App* app) override {
    KeyCommand::add_flags(app);
    key_option_->required();
    app->add_option("--reason", reason_, "Why; the ended tasks tell it")->type_name("TEXT");
    app->add_flag("--yes", is_sure_, "Do it: there is no way back");
  }
  void check(CLI::App*) override {
    if (is_sure_) return;
    throw CLI::ValidationError(
        "purge",
        "it fails activities and terminates workflows for good; say --yes if you are sure");
  }
  absl::Status act() override {
    auto asked = request<v1::PurgeKeyRequest>();
    asked.set_reason(reason_);
    asked.set_identity(desk_.identity);
    const auto response = ask<v1::PurgeKeyResponse>(asked);
    if (!response.ok()) return response.status();
    return print(*response,
                 absl::StrCat(api::queues::count_of(response->tasks(), "task"), " of key ",
                              printable(key_name(key_)), " in ", name_text(queue()), " ended\n"));
  }

 private:
  std::string reason_;
  bool is_sure_ = false;
};

struct Tree {
  template <typename Kind>
  void add(CLI::App* parent, const std::string& name, const std::string& help) const {
    Command::add(std::make_shared<Kind>(run, desk), parent, name, help);
  }

  CommandRun* run;
  Desk desk;
};

}  // namespace

void add_task_queue_commands(CLI::App* app, CommandRun* run, Desk desk) {
  auto* queues = app->add_subcommand("task-queue", "See and change the task queues of a server");
  queues->require_subcommand(1);
  const Tree tree{run, std::move(desk)};
  tree.add<ListCommand>(queues, "list", "The queues of a namespace");
  tree.add<DescribeCommand>(queues, "describe", "One queue: backlog by level, pollers, rules");
  tree.add<KeysCommand>(queues, "keys",
                        "The fairness keys of a queue: what waits, what each gets, what holds it");
  tree.add<ExplainCommand>(queues, "explain", "Say why a task waits");
  tree.add<PauseCommand>(queues, "pause", "Hand out no task of a queue, or of one key");
  tree.add<ResumeCommand>(queues, "resume", "End a pause, or a drain of a key");
  tree.add<DrainCommand>(queues, "drain", "Let go what waits of a key, and hold what comes later");
  tree.add<PurgeCommand>(
      queues, "purge",
      "End every task of a key that waits: activities fail, workflows are terminated");
  auto* config = queues->add_subcommand("config", "See and change the rules of a queue");
  config->require_subcommand(1);
  tree.add<ConfigGetCommand>(config, "get", "The rules of a queue");
  tree.add<ConfigSetCommand>(config, "set", "Change rules of a queue");
  tree.add<ConfigSetKeyCommand>(config, "set-key", "Change rules of one fairness key");
}

}  // namespace fairlead::server
