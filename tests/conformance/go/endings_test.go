package conformance

import (
	"errors"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"fairlead.test/conformance/app"
)

func registerEndings(w worker.Worker) {
	w.RegisterWorkflow(app.Sleep)
	w.RegisterWorkflow(app.SleepUntilWoken)
	w.RegisterWorkflow(app.Refuse)
	w.RegisterWorkflow(app.CleanUpWhenCancelled)
}

func TestATimerFires(t *testing.T) {
	s := newStage(t)
	defer s.work(registerEndings)()
	run := s.start(app.Sleep, 200*time.Millisecond)
	gives(s, run, "awake")
	equal(s, s.eventNames(run), []string{
		"WorkflowExecutionStarted",
		"WorkflowTaskScheduled",
		"WorkflowTaskStarted",
		"WorkflowTaskCompleted",
		"TimerStarted",
		"TimerFired",
		"WorkflowTaskScheduled",
		"WorkflowTaskStarted",
		"WorkflowTaskCompleted",
		"WorkflowExecutionCompleted",
	})
}

func TestATimerThatLostTheRaceIsCancelled(t *testing.T) {
	s := newStage(t)
	defer s.work(registerEndings)()
	run := s.start(app.SleepUntilWoken)
	s.untilEvent(run, "TimerStarted")
	s.signal(run, "wake", nil)
	gives(s, run, "woken")
	names := s.eventNames(run)
	equal(s, contains(names, "TimerCanceled"), true)
	equal(s, contains(names, "TimerFired"), false)
}

func TestAFailedWorkflowShowsTheClientItsTypeMessageAndDetails(t *testing.T) {
	s := newStage(t)
	defer s.work(registerEndings)()
	run := s.start(app.Refuse, "A-17")
	var cause *temporal.ApplicationError
	if err := run.Get(s.ctx, nil); !errors.As(err, &cause) {
		t.Fatalf("not an application error: %v", err)
	}
	equal(s, cause.Type(), "OutOfStock")
	equal(s, cause.Message(), "order A-17 is out of stock")
	var order string
	var left int
	s.check(cause.Details(&order, &left))
	equal(s, order, "A-17")
	equal(s, s.status(run), enumspb.WORKFLOW_EXECUTION_STATUS_FAILED)
}

func TestAWorkflowOutlivesABrokenDeployment(t *testing.T) {
	s := newStage(t)
	greeting := workflow.RegisterOptions{Name: "Greeting"}
	stopBroken := s.work(func(w worker.Worker) { w.RegisterWorkflowWithOptions(app.BrokenGreeting, greeting) })
	run := s.start("Greeting", "Ada")
	s.untilEvent(run, "WorkflowTaskFailed")
	stopBroken()
	equal(s, s.status(run), enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING)
	defer s.work(func(w worker.Worker) { w.RegisterWorkflowWithOptions(app.FixedGreeting, greeting) })()
	gives(s, run, "Hello, Ada!")
	// However many times the broken task was tried, the history tells of one failure.
	equal(s, count(s.eventNames(run), "WorkflowTaskFailed"), 1)
}

func TestACancelledWorkflowEndsAsCancelled(t *testing.T) {
	s := newStage(t)
	defer s.work(registerEndings)()
	run := s.start(app.Sleep, time.Hour)
	s.untilEvent(run, "TimerStarted")
	s.check(server.CancelWorkflow(s.ctx, run.GetID(), run.GetRunID()))
	var cancelled *temporal.CanceledError
	if err := run.Get(s.ctx, nil); !errors.As(err, &cancelled) {
		t.Fatalf("not cancelled: %v", err)
	}
	equal(s, s.status(run), enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED)
}

func TestAWorkflowMayAnswerACancellationWithAResult(t *testing.T) {
	s := newStage(t)
	defer s.work(registerEndings)()
	run := s.start(app.CleanUpWhenCancelled)
	s.untilEvent(run, "TimerStarted")
	s.check(server.CancelWorkflow(s.ctx, run.GetID(), run.GetRunID()))
	gives(s, run, "cleaned up")
}

func TestATerminatedWorkflowEndsAtOnceAndWithoutAWorker(t *testing.T) {
	s := newStage(t)
	run := s.start(app.Sleep, time.Hour)
	s.check(server.TerminateWorkflow(s.ctx, run.GetID(), run.GetRunID(), "spring cleaning"))
	var terminated *temporal.TerminatedError
	if err := run.Get(s.ctx, nil); !errors.As(err, &terminated) {
		t.Fatalf("not terminated: %v", err)
	}
	equal(s, s.status(run), enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED)
	var notFound *serviceerror.NotFound
	if err := server.TerminateWorkflow(s.ctx, run.GetID(), "", "again"); !errors.As(err, &notFound) {
		t.Fatalf("terminating a closed workflow gave %v", err)
	}
}

func TestAWorkflowThatOverrunsItsRunTimeoutIsTimedOut(t *testing.T) {
	s := newStage(t)
	defer s.work(registerEndings)()
	options := s.options()
	options.WorkflowRunTimeout = time.Second
	run := s.startWith(options, app.Sleep, time.Hour)
	var timeoutError *temporal.TimeoutError
	if err := run.Get(s.ctx, nil); !errors.As(err, &timeoutError) {
		t.Fatalf("not timed out: %v", err)
	}
	equal(s, timeoutError.TimeoutType(), enumspb.TIMEOUT_TYPE_START_TO_CLOSE)
	equal(s, s.status(run), enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT)
}
