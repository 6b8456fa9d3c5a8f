#include "history/selection.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/assert.h"
#include "base/error.h"
#include "history/activity.h"
#include "history/children.h"
#include "history/durable.h"

namespace fairlead::history {

namespace {

constexpr int kSelectionsMax = 1'000;
constexpr int kWaitsMax = 2'000;

// What the API calls the operation that a command begins, and how it names this one.
struct Operation {
  std::string_view kind;
  std::string identity;
};

Operation operation_of(const model::Event& command) {
  switch (command.kind()) {
    case model::ACTIVITY_SCHEDULED:
      return {"activity", command.activity_scheduled().activity_id()};
    case model::TIMER_STARTED:
      return {"timer", command.timer_started().timer_id()};
    case model::CHILD_INITIATED:
      return {"child", command.child_initiated().promised_run_id()};
    case model::WAIT_OPENED:
      return {"condition", command.wait().wait_id()};
    default:
      return {};
  }
}

absl::Status refused(std::string_view why) {
  return errors::failed_precondition(absl::StrCat("a selection ", std::string(why)));
}

model::Selection* find_selection(model::DurableState* durable, int64_t base) {
  for (auto& selection : *durable->mutable_selections()) {
    if (selection.base() == base) return &selection;
  }
  return nullptr;
}

bool has_ended(const model::SelectionMember& member) {
  return member.has_failed() || member.open() == 0;
}

bool is_failure(model::EventKind kind) {
  return kind != model::ACTIVITY_COMPLETED && kind != model::CHILD_COMPLETED &&
         kind != model::TIMER_FIRED && kind != model::WAIT_SATISFIED;
}

bool contains(const model::SelectionMember& member, int64_t step) {
  return member.base() <= step && step < member.base() + member.size();
}

void forget_if_over(model::DurableState* durable, int64_t base) {
  auto* selections = durable->mutable_selections();
  const auto found = std::find_if(selections->begin(), selections->end(),
                                  [&](const auto& each) { return each.base() == base; });
  if (found == selections->end() || !found->is_resolved()) return;
  const auto& members = found->members();
  const bool is_over = std::all_of(members.begin(), members.end(),
                                   [](const auto& member) { return member.open() == 0; });
  if (is_over) selections->erase(found);
}

model::Event selection_event(model::EventKind kind, const model::Selection& selection,
                             const model::SelectionMember& member) {
  model::Event event;
  event.set_kind(kind);
  auto* about = event.mutable_selection();
  about->set_group_id(selection.group_id());
  about->set_base(selection.base());
  about->set_size(selection.size());
  *about->mutable_member() = member;
  return event;
}

bool is_ordinary_group_open(const Run& run) {
  const auto is_in = [](const model::Step& step) {
    return step.group_base() != 0 && !step.selects();
  };
  const auto any = [](const auto& map, const auto& test) {
    return std::any_of(map.begin(), map.end(), [&](const auto& each) { return test(each.second); });
  };
  return any(run.activities, [&](const auto& each) { return is_in(each.scheduled().step()); }) ||
         any(run.timers, [&](const auto& each) { return is_in(each.step()); }) ||
         any(run.children, [&](const auto& each) { return is_in(each.initiated().step()); });
}

}  // namespace

absl::Status check_selections(const model::RunState& state, std::vector<model::Event>* commands) {
  std::map<int64_t, std::pair<model::SelectionPlace, int64_t>> groups;   // by base, with leaves
  std::map<int64_t, std::pair<model::SelectionPlace, int64_t>> members;  // likewise
  int64_t waits = state.durable().waits_size();
  for (auto& command : *commands) {
    if (command.kind() == model::WAIT_OPENED && ++waits > kWaitsMax) {
      return refused("or a run has at most 2000 waits at once");
    }
    const auto* step = mutable_step(&command);
    if (step == nullptr || !step->selects()) continue;
    const auto& place = step->selection();
    const auto operation = operation_of(command);
    const bool is_single = place.member_kind() != "group";
    const bool is_inside = place.member_base() >= step->group_base() &&
                           place.member_base() <= step->sequence() && place.member_size() >= 1 &&
                           step->sequence() - place.member_base() < place.member_size();
    if (operation.kind.empty()) return refused("has an operation that cannot be selected");
    if (!is_inside ||
        (is_single && (place.member_kind() != operation.kind || place.member_size() != 1))) {
      return refused("has a member that does not fit its operations");
    }
    auto& group = groups.try_emplace(step->group_base(), place, 0).first->second;
    auto& member = members.try_emplace(place.member_base(), place, 0).first->second;
    if (group.first.group_id() != place.group_id() || group.first.size() != place.size() ||
        member.first.member_size() != place.member_size() ||
        member.first.member_index() != place.member_index() ||
        member.first.member_key() != place.member_key()) {
      return refused("is described in two ways");
    }
    ++group.second;
    ++member.second;
  }
  for (const auto& [base, group] : groups) {
    if (group.second != group.first.size()) return refused("is begun as a whole");
  }
  for (const auto& [base, member] : members) {
    if (member.second != member.first.member_size()) return refused("is begun as a whole");
  }
  if (state.durable().selections_size() + static_cast<int>(groups.size()) > kSelectionsMax) {
    return refused("has to wait: 1000 of them have members that did not end");
  }
  return absl::OkStatus();
}

void begin_selections(model::DurableState* durable, std::vector<model::Event>* commands) {
  for (auto& command : *commands) {
    auto* step = mutable_step(&command);
    if (step == nullptr || !step->selects()) continue;
    const auto place = step->selection();
    step->clear_selection();
    auto* selection = find_selection(durable, step->group_base());
    if (selection == nullptr) {
      selection = durable->add_selections();
      selection->set_group_id(place.group_id());
      selection->set_base(step->group_base());
      selection->set_size(place.size());
    }
    if (selection->members().empty() ||
        selection->members().rbegin()->base() != place.member_base()) {
      auto* member = selection->add_members();
      member->set_key(place.member_key());
      member->set_index(place.member_index());
      member->set_base(place.member_base());
      member->set_size(place.member_size());
      member->set_kind(place.member_kind());
      member->set_identity(
          place.member_kind() == "group"
              ? absl::StrCat("group:", place.member_base(), ":", place.member_size())
              : operation_of(command).identity);
      member->set_open(place.member_size());
    }
  }
}

bool has_open_selection(const model::DurableState& durable) {
  return std::any_of(durable.selections().begin(), durable.selections().end(),
                     [](const auto& selection) { return !selection.is_resolved(); });
}

void end_selected(Transaction& tx, const model::Step& step, model::EventKind kind,
                  int64_t event_id) {
  auto* durable = tx.state().mutable_durable();
  auto* selection = find_selection(durable, step.group_base());
  FL_ASSERT(selection != nullptr, "a selection is kept until all of it has ended");
  const auto member =
      std::find_if(selection->mutable_members()->begin(), selection->mutable_members()->end(),
                   [&](const auto& each) { return contains(each, step.sequence()); });
  FL_ASSERT(member != selection->mutable_members()->end(), "each operation is of a member");
  const bool had_ended = has_ended(*member);
  member->set_open(member->open() - 1);
  if (is_failure(kind)) member->set_has_failed(true);
  if (!had_ended && has_ended(*member) && !member->is_canceled()) {
    if (!selection->is_resolved()) {
      selection->set_is_resolved(true);
      auto event = selection_event(model::SELECTION_RESOLVED, *selection, *member);
      event.mutable_selection()->set_resolution_event_id(event_id);
      event.mutable_selection()->set_resolution_kind(kind);
      tx.append(std::move(event));
      durable->set_wakes(true);
    } else if (!has_open_selection(*durable) && !is_ordinary_group_open(tx.run())) {
      // The workflow may stand at this very member. In a group it does not, and waking it there
      // would make it begin the group anew.
      durable->set_wakes(true);
    }
  }
  forget_if_over(durable, step.group_base());
}

void cancel_selected(Transaction& tx, const model::SelectionEvent& asked) {
  auto* durable = tx.state().mutable_durable();
  model::Selection* selection = nullptr;
  for (auto& each : *durable->mutable_selections()) {
    if (each.group_id() == asked.group_id()) selection = &each;
  }
  if (selection == nullptr) return;  // all of it has ended
  const int64_t base = selection->base();
  const auto member =
      std::find_if(selection->mutable_members()->begin(), selection->mutable_members()->end(),
                   [&](const auto& each) { return each.base() == asked.member().base(); });
  // It ended before, which the worker had not seen.
  if (member == selection->mutable_members()->end() || has_ended(*member) ||
      member->is_canceled()) {
    return;
  }
  member->set_is_canceled(true);
  const auto canceled = *member;
  auto event = selection_event(model::SELECTION_CANCELED, *selection, canceled);
  const auto is_meant = [&](const model::Step& step) {
    return step.group_base() == base && contains(canceled, step.sequence());
  };
  std::vector<int64_t> ids;
  for (const auto& [id, activity] : tx.run().activities) {
    if (is_meant(activity.scheduled().step())) ids.push_back(id);
  }
  for (const int64_t id : ids) cancel_activity(tx, *tx.run().find_activity(id), "", "");
  ids.clear();
  for (const auto& [id, timer] : tx.run().timers) {
    if (is_meant(timer.step())) ids.push_back(id);
  }
  for (const int64_t id : ids) cancel_durable_timer(tx, id);
  ids.clear();
  for (const auto& [id, child] : tx.run().children) {
    if (is_meant(child.initiated().step())) ids.push_back(id);
  }
  for (const int64_t id : ids) {
    cancel_child(tx, tx.run().children.at(id));
    tx.erase_child(id);
  }
  auto* waits = durable->mutable_waits();
  waits->erase(std::remove_if(waits->begin(), waits->end(),
                              [&](const auto& wait) { return is_meant(wait.step()); }),
               waits->end());
  tx.append(std::move(event));
  // Ends of activities were counted; of what else was canceled nothing will be heard.
  if (auto* left = find_selection(durable, base); left != nullptr) {
    for (auto& each : *left->mutable_members()) {
      if (each.base() == canceled.base()) each.set_open(0);
    }
  }
  forget_if_over(durable, base);
}

void interrupt_selections(model::DurableState* durable, int64_t base, int64_t span) {
  auto* selections = durable->mutable_selections();
  std::vector<int64_t> touched;
  for (auto& selection : *selections) {
    for (auto& member : *selection.mutable_members()) {
      if (member.base() < base || member.base() >= base + span) continue;
      member.set_is_canceled(true);
      member.set_open(0);
      if (touched.empty() || touched.back() != selection.base())
        touched.push_back(selection.base());
    }
  }
  for (const int64_t each : touched) {
    auto* selection = find_selection(durable, each);
    const bool is_whole = each >= base && each + selection->size() <= base + span;
    if (is_whole) selection->set_is_resolved(true);  // it has no winner and needs none
    forget_if_over(durable, each);
  }
}

void meet_selected_wait(Transaction& tx) {
  auto* durable = tx.state().mutable_durable();
  const auto& waits = durable->waits();
  int chosen = -1;
  bool decides = false;  // it is of a selection without a winner
  for (int i = 0; i < waits.size(); ++i) {
    if (!waits[i].step().selects()) return;  // the workflow stands there, and its worker judges
    const auto* selection = find_selection(durable, waits[i].step().group_base());
    const bool is_open = selection != nullptr && !selection->is_resolved();
    if (decides && !is_open) continue;
    chosen = i;
    decides = is_open;
  }
  if (chosen < 0) return;
  const model::Wait wait = waits[chosen];
  durable->mutable_waits()->DeleteSubrange(chosen, 1);
  model::Event event;
  event.set_kind(model::WAIT_SATISFIED);
  *event.mutable_wait() = wait;
  const int64_t id = tx.append(std::move(event));
  if (tx.run().timers.contains(wait.timer_event_id())) {
    cancel_durable_timer(tx, wait.timer_event_id());
  }
  end_selected(tx, wait.step(), model::WAIT_SATISFIED, id);
  if (!decides || has_open_selection(*durable)) return;
  // The winner's code sees all signals that came before it.
  auto* messages = durable->mutable_messages();
  messages->erase(std::remove_if(messages->begin(), messages->end(),
                                 [](const auto& message) { return !message.is_update(); }),
                  messages->end());
}

}  // namespace fairlead::history
