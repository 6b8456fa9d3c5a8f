package conformance

import (
	"errors"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"fairlead.test/conformance/app"
)

var helloHistory = []string{
	"WorkflowExecutionStarted",
	"WorkflowTaskScheduled",
	"WorkflowTaskStarted",
	"WorkflowTaskCompleted",
	"ActivityTaskScheduled",
	"ActivityTaskStarted",
	"ActivityTaskCompleted",
	"WorkflowTaskScheduled",
	"WorkflowTaskStarted",
	"WorkflowTaskCompleted",
	"WorkflowExecutionCompleted",
}

func registerHello(w worker.Worker) {
	w.RegisterWorkflow(app.Hello)
	w.RegisterWorkflow(app.HelloLocally)
	w.RegisterActivity(app.Greet)
}

func TestHelloWithAnActivityLeavesExactlyTheExpectedHistory(t *testing.T) {
	s := newStage(t)
	defer s.work(registerHello)()
	run := s.start(app.Hello, "Ada")
	gives(s, run, "Hello, Ada!")
	equal(s, s.eventNames(run), helloHistory)
}

func TestAFailingActivityIsRetriedUntilItSucceeds(t *testing.T) {
	s := newStage(t)
	defer s.work(func(w worker.Worker) {
		w.RegisterWorkflow(app.RetryUntil)
		w.RegisterActivity(app.SucceedOnAttempt)
	})()
	run := s.start(app.RetryUntil, int32(3))
	gives(s, run, int32(3))

	// Attempts that are retried leave no events of their own: only the last one is written.
	equal(s, s.eventNames(run), helloHistory)
	started := s.history(run).Events[5].GetActivityTaskStartedEventAttributes()
	equal(s, started.GetAttempt(), int32(3))
	equal(s, started.GetLastFailure().GetMessage(), "attempt 2 is too early")
	equal(s, started.GetLastFailure().GetApplicationFailureInfo().GetType(), "TooEarly")
}

func pay(s stage, charge app.Charge) (*temporal.ActivityError, *temporal.ApplicationError) {
	s.Helper()
	defer s.work(func(w worker.Worker) {
		w.RegisterWorkflow(app.Pay)
		w.RegisterActivity(app.Decline)
	})()
	err := s.start(app.Pay, charge).Get(s.ctx, nil)
	var workflowError *temporal.WorkflowExecutionError
	var activityError *temporal.ActivityError
	var applicationError *temporal.ApplicationError
	if !errors.As(err, &workflowError) || !errors.As(err, &activityError) || !errors.As(err, &applicationError) {
		s.Fatalf("not a failed activity of a failed workflow: %v", err)
	}
	return activityError, applicationError
}

func TestAnActivityThatExhaustsItsAttemptsFailsWithItsLastError(t *testing.T) {
	s := newStage(t)
	activityError, cause := pay(s, app.Charge{Amount: 40, ErrorType: "Declined"})
	equal(s, activityError.ActivityType().GetName(), "Decline")
	equal(s, activityError.RetryState(), enumspb.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED)
	equal(s, cause.Type(), "Declined")
	equal(s, cause.Message(), "card declined on attempt 3")
	var amount int
	s.check(cause.Details(&amount))
	equal(s, amount, 40)
}

func TestAnErrorTypeListedAsNonRetryableIsNotRetried(t *testing.T) {
	s := newStage(t)
	activityError, cause := pay(s, app.Charge{Amount: 40, ErrorType: "StolenCard"})
	equal(s, activityError.RetryState(), enumspb.RETRY_STATE_NON_RETRYABLE_FAILURE)
	equal(s, cause.Message(), "card declined on attempt 1")
}

func TestAnErrorThatSaysItIsNonRetryableIsNotRetried(t *testing.T) {
	s := newStage(t)
	activityError, cause := pay(s, app.Charge{Amount: 40, ErrorType: "Declined", NonRetryable: true})
	equal(s, activityError.RetryState(), enumspb.RETRY_STATE_NON_RETRYABLE_FAILURE)
	equal(s, cause.NonRetryable(), true)
	equal(s, cause.Message(), "card declined on attempt 1")
}

func elsewhere(s stage) (run client.WorkflowRun, watched *app.Watched, stop func()) {
	s.Helper()
	watched = app.NewWatched()
	stop = s.work(func(w worker.Worker) {
		w.RegisterWorkflow(app.CompleteElsewhere)
		w.RegisterActivity(watched)
	})
	return s.start(app.CompleteElsewhere), watched, stop
}

func TestAnActivityCanBeCompletedByItsTaskToken(t *testing.T) {
	s := newStage(t)
	run, watched, stop := elsewhere(s)
	defer stop()
	token := receive(s, watched.Started).TaskToken
	s.check(server.RecordActivityHeartbeat(s.ctx, token, "nearly there"))
	s.check(server.CompleteActivity(s.ctx, token, "done by token", nil))
	gives(s, run, "done by token")
}

func TestAnActivityCanBeCompletedByItsId(t *testing.T) {
	s := newStage(t)
	run, watched, stop := elsewhere(s)
	defer stop()
	info := receive(s, watched.Started)
	s.check(server.CompleteActivityByID(
		s.ctx, info.WorkflowNamespace, run.GetID(), run.GetRunID(), info.ActivityID, "done by id", nil))
	gives(s, run, "done by id")
}

func TestAnActivityCanBeFailedByItsTaskToken(t *testing.T) {
	s := newStage(t)
	run, watched, stop := elsewhere(s)
	defer stop()
	absent := temporal.NewApplicationError("nobody came", "Absent")
	s.check(server.CompleteActivity(s.ctx, receive(s, watched.Started).TaskToken, nil, absent))
	var cause *temporal.ApplicationError
	if err := run.Get(s.ctx, nil); !errors.As(err, &cause) || cause.Type() != "Absent" {
		t.Fatalf("got %v", err)
	}
}

func TestALocalActivityLeavesAMarkerInsteadOfActivityEvents(t *testing.T) {
	s := newStage(t)
	defer s.work(registerHello)()
	run := s.start(app.HelloLocally, "Ada")
	gives(s, run, "Hello, Ada!")
	equal(s, s.eventNames(run), []string{
		"WorkflowExecutionStarted",
		"WorkflowTaskScheduled",
		"WorkflowTaskStarted",
		"WorkflowTaskCompleted",
		"MarkerRecorded",
		"WorkflowExecutionCompleted",
	})
}

func TestAnActivityInheritsEachFieldOfItsPriorityThatItDoesNotSet(t *testing.T) {
	s := newStage(t)
	defer s.work(func(w worker.Worker) {
		w.RegisterWorkflow(app.ReadPriorities)
		w.RegisterActivity(app.ReadPriority)
	})()
	options := s.options()
	options.Priority = temporal.Priority{PriorityKey: 2, FairnessKey: "acme", FairnessWeight: 4}
	run := s.startWith(options, app.ReadPriorities)
	gives(s, run, []app.Seat{
		{Level: 2, Tenant: "acme", Weight: 4},
		{Level: 1, Tenant: "bolt", Weight: 2.5},
		{Level: 1, Tenant: "acme", Weight: 4},
		{Level: 2, Tenant: "bolt", Weight: 4},
		{Level: 2, Tenant: "acme", Weight: 2.5},
	})
}
