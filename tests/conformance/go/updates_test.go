package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	updatepb "go.temporal.io/api/update/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"fairlead.test/conformance/app"
)

const (
	accepted  = "WorkflowExecutionUpdateAccepted"
	completed = "WorkflowExecutionUpdateCompleted"
)

func newTask(then ...string) []string {
	return append([]string{"WorkflowTaskScheduled", "WorkflowTaskStarted", "WorkflowTaskCompleted"}, then...)
}

func registerAccounts(w worker.Worker) {
	registerAccountsOnly(w)
	w.RegisterActivity(app.Greet)
}

func registerAccountsOnly(r worker.WorkflowRegistry) {
	r.RegisterWorkflow(app.Account)
	r.RegisterWorkflow(app.TravellingAccount)
}

func namespace() string {
	if named := os.Getenv("FAIRLEAD_NAMESPACE"); named != "" {
		return named
	}
	return client.DefaultNamespace
}

// ask sends an update, waits for it to be completed, and returns its result.
func ask[T any](s stage, id, name string, args ...any) (result T, err error) {
	s.Helper()
	handle, err := server.UpdateWorkflow(s.ctx, client.UpdateWorkflowOptions{
		WorkflowID: s.name, UpdateID: id, UpdateName: name, Args: args,
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(s.ctx, &result)
	}
	return result, err
}

// answers checks an update's result.
func answers[T any](s stage, want T, name string, args ...any) {
	s.Helper()
	got, err := ask[T](s, "", name, args...)
	s.check(err)
	equal(s, got, want)
}

// answer is what somebody in the background waits for.
type answer[T any] struct {
	result T
	err    error
}

func askInBackground[T any](s stage, id, name string, args ...any) chan answer[T] {
	s.Helper()
	channel := make(chan answer[T], 1)
	go func() {
		result, err := ask[T](s, id, name, args...)
		channel <- answer[T]{result, err}
	}()
	return channel
}

// startTransfer waits until the update is accepted; its id is the receiver's name.
func (s stage) startTransfer(to string) client.WorkflowUpdateHandle {
	s.Helper()
	handle, err := server.UpdateWorkflow(s.ctx, client.UpdateWorkflowOptions{
		WorkflowID: s.name, UpdateID: to, UpdateName: "transfer", Args: []any{to},
		WaitForStage: client.WorkflowUpdateStageAccepted,
	})
	s.check(err)
	return handle
}

func (s stage) transferred(handle client.WorkflowUpdateHandle) {
	s.Helper()
	var result string
	s.check(handle.Get(s.ctx, &result))
	equal(s, result, handle.UpdateID()+" has the money")
}

func (s stage) refused(err error, message string) *temporal.ApplicationError {
	s.Helper()
	var failure *temporal.ApplicationError
	if !errors.As(err, &failure) || !strings.Contains(failure.Message(), message) {
		s.Fatalf("not refused with %q: %v", message, err)
	}
	return failure
}

func (s stage) notFound(err error, message string) {
	s.Helper()
	var notFound *serviceerror.NotFound
	if !errors.As(err, &notFound) || !strings.Contains(notFound.Message, message) {
		s.Fatalf("not missing with %q: %v", message, err)
	}
}

// untilAdmitted waits until the server knows an update that no worker has seen yet.
func (s stage) untilAdmitted(id string) {
	s.Helper()
	s.until("the update is admitted", func() bool {
		_, err := server.WorkflowService().PollWorkflowExecutionUpdate(s.ctx,
			&workflowservice.PollWorkflowExecutionUpdateRequest{
				Namespace: namespace(),
				UpdateRef: &updatepb.UpdateRef{
					WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: s.name},
					UpdateId:          id,
				},
			})
		var notFound *serviceerror.NotFound
		if errors.As(err, &notFound) {
			return false
		}
		s.check(err)
		return true
	})
}

func (s stage) replaysAccount(run client.WorkflowRun) {
	s.Helper()
	replayer := worker.NewWorkflowReplayer()
	registerAccountsOnly(replayer)
	s.check(replayer.ReplayWorkflowHistory(quiet, s.history(run)))
}

// closes ends an account and checks its journal and that its history replays.
func (s stage) closes(run client.WorkflowRun, journal ...string) {
	s.Helper()
	s.signal(run, "close", nil)
	gives(s, run, append([]string{}, journal...))
	s.replaysAccount(run)
}

func TestAnUpdateChangesTheWorkflowAndReturnsAValue(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	run := s.start(app.Account, false)
	answers(s, 5, "deposit", 5)
	before := s.eventNames(run)
	answers(s, 12, "deposit", 7)
	equal(s, s.eventNames(run), append(before, newTask(accepted, completed)...))
	s.closes(run, "deposit 5", "deposit 7")
}

func TestTheHistoryKeepsTheRequestAndTheOutcomeOfAnUpdate(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	run := s.start(app.Account, false)
	answers(s, 5, "deposit", 5)
	_, err := ask[int](s, "seven", "deposit", 7)
	s.check(err)
	tail := s.history(run).Events
	tail = tail[len(tail)-5:]
	request := tail[3].GetWorkflowExecutionUpdateAcceptedEventAttributes()
	equal(s, request.ProtocolInstanceId, "seven")
	equal(s, request.AcceptedRequestMessageId, "seven/request")
	equal(s, request.AcceptedRequestSequencingEventId, tail[0].EventId)
	equal(s, request.AcceptedRequest.Meta.UpdateId, "seven")
	equal(s, request.AcceptedRequest.Input.Name, "deposit")
	equal(s, string(request.AcceptedRequest.Input.Args.Payloads[0].Data), "7")
	response := tail[4].GetWorkflowExecutionUpdateCompletedEventAttributes()
	equal(s, response.Meta.UpdateId, "seven")
	equal(s, response.AcceptedEventId, tail[3].EventId)
	equal(s, string(response.Outcome.GetSuccess().Payloads[0].Data), "12")
	s.closes(run, "deposit 5", "deposit 7")
}

func TestARefusedUpdateLeavesNoTraceAndTheWorkflowGoesOn(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	run := s.start(app.Account, false)
	answers(s, 5, "deposit", 5)
	before := s.eventNames(run)
	for _, amount := range []int{-1, -2, -3} {
		_, err := ask[int](s, "", "deposit", amount)
		s.refused(err, fmt.Sprintf("%d is not an amount", amount))
		equal(s, s.eventNames(run), before)
	}
	// The refused tasks never were: their ids belong to the next one.
	answers(s, 12, "deposit", 7)
	equal(s, s.eventNames(run), append(before, newTask(accepted, completed)...))
	s.closes(run, "deposit 5", "deposit 7")
}

func TestARefusedIdMayBeUsedAgain(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	run := s.start(app.Account, false)
	_, err := ask[int](s, "try", "deposit", -5)
	s.refused(err, "-5 is not an amount")
	balance, err := ask[int](s, "try", "deposit", 5)
	s.check(err)
	equal(s, balance, 5)
	s.closes(run, "deposit 5")
}

func TestAnUpdateAndARefusalShareTheFirstTask(t *testing.T) {
	s := newStage(t)
	run := s.start(app.Account, false)
	good := askInBackground[int](s, "good", "deposit", 5)
	s.untilAdmitted("good")
	bad := askInBackground[int](s, "bad", "deposit", -5)
	s.untilAdmitted("bad")
	defer s.work(registerAccounts)()
	equal(s, receive(s, good), answer[int]{5, nil})
	s.refused(receive(s, bad).err, "-5 is not an amount")
	equal(s, s.eventNames(run), append([]string{"WorkflowExecutionStarted"}, newTask(accepted, completed)...))
	s.closes(run, "deposit 5")
}

func TestAnUnknownUpdateIsRefusedByName(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	run := s.start(app.Account, false)
	_, err := ask[int](s, "", "weather")
	s.refused(err, "weather")
	s.closes(run)
}

func TestAnUpdateWhoseHandlerFailsIsAFailedUpdateOfAHealthyWorkflow(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	run := s.start(app.Account, false)
	answers(s, 5, "deposit", 5)
	_, err := ask[int](s, "", "withdraw", 6)
	failure := s.refused(err, "only 5 left")
	equal(s, failure.Type(), "Overdrawn")
	var left int
	s.check(failure.Details(&left))
	equal(s, left, 5)
	names := s.eventNames(run)
	equal(s, names[len(names)-2:], []string{accepted, completed})
	answers(s, 0, "withdraw", 5)
	s.closes(run, "deposit 5")
}

func TestACallerWaitsForAcceptanceAndPollsForTheResult(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	run := s.start(app.Account, false)
	update := s.startTransfer("Ada")
	equal(s, update.RunID(), run.GetRunID())
	equal(s, count(s.eventNames(run), accepted), 1)
	equal(s, count(s.eventNames(run), completed), 0)
	s.signal(run, "approve", "Ada")
	s.transferred(update)
	s.closes(run, "transfer to Ada", "transferred to Ada")
}

func TestAHandlerWaitsForActivitiesAndTimersWhileSignalsArrive(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	run := s.start(app.Account, false)
	thanks := askInBackground[[]string](s, "", "thank", "Ada")
	s.signal(run, "approve", "Bob")
	s.signal(run, "approve", "Cleo")
	equal(s, receive(s, thanks), answer[[]string]{[]string{"Hello, Ada!", "Hello, dear Ada!", "good night"}, nil})
	answers(s, "Cleo has the money", "transfer", "Cleo")
	s.closes(run, "transfer to Cleo", "transferred to Cleo")
}

func TestUpdatesAreHeardInTheOrderInWhichTheyWereAdmitted(t *testing.T) {
	s := newStage(t)
	run := s.start(app.Account, false)
	var waiting []chan answer[int]
	for amount := 1; amount <= 5; amount++ {
		id := fmt.Sprint(amount)
		waiting = append(waiting, askInBackground[int](s, id, "deposit", amount))
		s.untilAdmitted(id)
	}
	defer s.work(registerAccounts)()
	for index, balance := range []int{1, 3, 6, 10, 15} {
		equal(s, receive(s, waiting[index]), answer[int]{balance, nil})
	}
	s.closes(run, "deposit 1", "deposit 2", "deposit 3", "deposit 4", "deposit 5")
}

func TestHandlersOverlapAndFinishInTheirOwnOrder(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	run := s.start(app.Account, false)
	updates := map[string]client.WorkflowUpdateHandle{}
	for _, to := range []string{"a", "b", "c"} {
		updates[to] = s.startTransfer(to)
	}
	for _, to := range []string{"c", "a", "b"} {
		s.signal(run, "approve", to)
		s.transferred(updates[to])
	}
	requests, order := map[int64]string{}, []string{}
	for _, event := range s.history(run).Events {
		if request := event.GetWorkflowExecutionUpdateAcceptedEventAttributes(); request != nil {
			requests[event.EventId] = request.ProtocolInstanceId
		}
		if response := event.GetWorkflowExecutionUpdateCompletedEventAttributes(); response != nil {
			equal(s, requests[response.AcceptedEventId], response.Meta.UpdateId)
			order = append(order, response.Meta.UpdateId)
		}
	}
	equal(s, order, []string{"c", "a", "b"})
	s.closes(run, "transfer to a", "transfer to b", "transfer to c",
		"transferred to c", "transferred to a", "transferred to b")
}

func TestManyUpdatesAtOnceAreAllAnswered(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	run := s.start(app.Account, false)
	var waiting []chan answer[int]
	for range 8 {
		waiting = append(waiting, askInBackground[int](s, "", "deposit", 1))
	}
	var balances []int
	for _, channel := range waiting {
		answer := receive(s, channel)
		s.check(answer.err)
		balances = append(balances, answer.result)
	}
	sort.Ints(balances)
	equal(s, balances, []int{1, 2, 3, 4, 5, 6, 7, 8})
	s.replaysAccount(run)
	s.check(server.TerminateWorkflow(s.ctx, s.name, "", "the test is over"))
}

func TestAnUpdateIdCountsOnceHoweverOftenItIsSent(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	run := s.start(app.Account, false)
	for range 2 {
		balance, err := ask[int](s, "once", "deposit", 5)
		s.check(err)
		equal(s, balance, 5)
	}
	first, again := s.startTransfer("Ada"), s.startTransfer("Ada")
	s.signal(run, "approve", "Ada")
	s.transferred(first)
	s.transferred(again)
	equal(s, count(s.eventNames(run), accepted), 2)
	s.closes(run, "deposit 5", "transfer to Ada", "transferred to Ada")
}

func TestAnotherClientPollsAnUpdateByItsId(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	run := s.start(app.Account, false)
	s.startTransfer("Ada")
	elsewhere, err := client.DialContext(context.Background(), client.Options{
		HostPort: os.Getenv("FAIRLEAD_ADDRESS"), Namespace: namespace(), Logger: quiet,
	})
	s.check(err)
	defer elsewhere.Close()
	update := elsewhere.GetWorkflowUpdateHandle(
		client.GetWorkflowUpdateHandleOptions{WorkflowID: s.name, UpdateID: "Ada"})
	s.signal(run, "approve", "Ada")
	s.transferred(update)
	s.closes(run, "transfer to Ada", "transferred to Ada")
}

func TestPollingAnUnknownUpdateIsRefusedAsNotFound(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	run := s.start(app.Account, false)
	update := server.GetWorkflowUpdateHandle(
		client.GetWorkflowUpdateHandleOptions{WorkflowID: s.name, UpdateID: "nobody"})
	s.notFound(update.Get(s.ctx, nil), `update "nobody" not found`)
	s.closes(run)
}

func TestAHandlerKnowsWhichUpdateItServes(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	run := s.start(app.Account, false)
	a := askInBackground[[]string](s, "a", "who asks")
	b := askInBackground[[]string](s, "b", "who asks")
	equal(s, receive(s, a), answer[[]string]{[]string{"who asks", "a"}, nil})
	equal(s, receive(s, b), answer[[]string]{[]string{"who asks", "b"}, nil})
	s.closes(run)
}
