package conformance

import (
	"errors"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"fairlead.test/conformance/app"
)

func registerChains(w worker.Worker) {
	w.RegisterWorkflow(app.RunRelay)
	w.RegisterWorkflow(app.SucceedOnRun)
	w.RegisterWorkflow(app.KeepDiary)
	w.RegisterWorkflow(app.Refuse)
}

func quickRetry(attemptsMax int32) *temporal.RetryPolicy {
	return &temporal.RetryPolicy{
		InitialInterval:    50 * time.Millisecond,
		BackoffCoefficient: 1,
		MaximumAttempts:    attemptsMax,
	}
}

func (s stage) runWithID(runID string) client.WorkflowRun {
	return server.GetWorkflow(s.ctx, s.name, runID)
}

func (s stage) started(run client.WorkflowRun) *historypb.WorkflowExecutionStartedEventAttributes {
	s.Helper()
	return s.history(run).Events[0].GetWorkflowExecutionStartedEventAttributes()
}

func (s stage) lastEvent(run client.WorkflowRun) *historypb.HistoryEvent {
	s.Helper()
	events := s.history(run).Events
	return events[len(events)-1]
}

func decode[T any](s stage, payloads *commonpb.Payloads) (value T) {
	s.Helper()
	s.check(converter.GetDefaultDataConverter().FromPayloads(payloads, &value))
	return value
}

// nextRun returns the id of the run that follows, or nothing after the last one.
func nextRun(event *historypb.HistoryEvent) string {
	for _, attributes := range []interface{ GetNewExecutionRunId() string }{
		event.GetWorkflowExecutionCompletedEventAttributes(),
		event.GetWorkflowExecutionFailedEventAttributes(),
		event.GetWorkflowExecutionTimedOutEventAttributes(),
		event.GetWorkflowExecutionContinuedAsNewEventAttributes(),
	} {
		if id := attributes.GetNewExecutionRunId(); id != "" {
			return id
		}
	}
	return ""
}

// chain returns every run from the first to the last.
func (s stage) chain(firstRunID string) (runs []client.WorkflowRun) {
	s.Helper()
	for id := firstRunID; id != ""; id = nextRun(s.lastEvent(runs[len(runs)-1])) {
		runs = append(runs, s.runWithID(id))
	}
	return runs
}

func TestThreeRunsThatContinueAsNewGiveOneResult(t *testing.T) {
	s := newStage(t)
	defer s.work(registerChains)()
	options := s.options()
	options.Memo = map[string]any{"colour": "blue"}
	run := s.startWith(options, app.RunRelay, app.Relay{Left: 3})
	first := run.GetRunID()
	var relay app.Relay
	s.check(run.Get(s.ctx, &relay))
	equal(s, len(relay.RunIDs), 3)
	equal(s, relay.RunIDs[0], first)

	for index, id := range relay.RunIDs[1:] {
		before := relay.RunIDs[index]
		continued := s.lastEvent(s.runWithID(before)).GetWorkflowExecutionContinuedAsNewEventAttributes()
		equal(s, continued.GetNewExecutionRunId(), id)
		equal(s, s.status(s.runWithID(before)), enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW)
		started := s.started(s.runWithID(id))
		equal(s, started.ContinuedExecutionRunId, before)
		equal(s, started.FirstExecutionRunId, first)
	}
	description, err := server.DescribeWorkflowExecution(s.ctx, s.name, relay.RunIDs[2])
	s.check(err)
	colour := description.WorkflowExecutionInfo.Memo.Fields["colour"]
	equal(s, decode[string](s, &commonpb.Payloads{Payloads: []*commonpb.Payload{colour}}), "blue")
}

func TestANewRunKeepsThePriority(t *testing.T) {
	s := newStage(t)
	defer s.work(registerChains)()
	options := s.options()
	options.Priority = temporal.Priority{PriorityKey: 2, FairnessKey: "t", FairnessWeight: 4}
	var relay app.Relay
	s.check(s.startWith(options, app.RunRelay, app.Relay{Left: 2}).Get(s.ctx, &relay))
	seat := app.Seat{Level: 2, Tenant: "t", Weight: 4}
	equal(s, relay.Seats, []app.Seat{seat, seat})
}

func TestAFailingWorkflowIsRetriedUntilItSucceeds(t *testing.T) {
	s := newStage(t)
	defer s.work(registerChains)()
	options := s.options()
	options.RetryPolicy = quickRetry(0)
	run := s.startWith(options, app.SucceedOnRun, int32(3))
	first := run.GetRunID()
	gives(s, run, int32(3))

	runs := s.chain(first)
	equal(s, len(runs), 3)
	for index, run := range runs {
		equal(s, s.started(run).Attempt, int32(index+1))
	}
	equal(s, s.status(runs[0]), enumspb.WORKFLOW_EXECUTION_STATUS_FAILED)
	last := s.started(runs[2])
	equal(s, last.Initiator, enumspb.CONTINUE_AS_NEW_INITIATOR_RETRY)
	equal(s, last.ContinuedFailure.GetMessage(), "run 2 is too early")
	equal(s, last.FirstExecutionRunId, first)
}

func TestAWorkflowThatExhaustsItsAttemptsFailsWithItsLastError(t *testing.T) {
	s := newStage(t)
	defer s.work(registerChains)()
	options := s.options()
	options.RetryPolicy = quickRetry(2)
	run := s.startWith(options, app.SucceedOnRun, int32(9))
	first := run.GetRunID()
	var cause *temporal.ApplicationError
	if err := run.Get(s.ctx, nil); !errors.As(err, &cause) {
		t.Fatalf("not an application error: %v", err)
	}
	equal(s, cause.Message(), "run 2 is too early")
	runs := s.chain(first)
	equal(s, len(runs), 2)
	failed := s.lastEvent(runs[1]).GetWorkflowExecutionFailedEventAttributes()
	equal(s, failed.RetryState, enumspb.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED)
}

func (s stage) failsAtOnce(run client.WorkflowRun) {
	s.Helper()
	first := run.GetRunID()
	if err := run.Get(s.ctx, nil); err == nil {
		s.Fatal("the workflow did not fail")
	}
	runs := s.chain(first)
	equal(s, len(runs), 1)
	failed := s.lastEvent(runs[0]).GetWorkflowExecutionFailedEventAttributes()
	equal(s, failed.RetryState, enumspb.RETRY_STATE_NON_RETRYABLE_FAILURE)
}

func TestANonRetryableFailureIsNotRetried(t *testing.T) {
	s := newStage(t)
	defer s.work(registerChains)()
	options := s.options()
	options.RetryPolicy = quickRetry(0)
	s.failsAtOnce(s.startWith(options, app.Refuse, "A-17"))
}

func TestAFailureWhoseTypeThePolicyExcludesIsNotRetried(t *testing.T) {
	s := newStage(t)
	defer s.work(registerChains)()
	options := s.options()
	options.RetryPolicy = quickRetry(0)
	options.RetryPolicy.NonRetryableErrorTypes = []string{"TooEarly"}
	s.failsAtOnce(s.startWith(options, app.SucceedOnRun, int32(2)))
}

func TestAScheduleHandsTheLastResultFromRunToRun(t *testing.T) {
	s := newStage(t)
	defer s.work(registerChains)()
	options := s.options()
	options.CronSchedule = "@every 1s"
	run := s.startWith(options, app.KeepDiary)
	first := run.GetRunID()

	s.until("the fifth run has come", func() bool { return len(s.chain(first)) >= 5 })
	s.check(server.TerminateWorkflow(s.ctx, s.name, "", "enough"))
	var terminated *temporal.TerminatedError
	if err := run.Get(s.ctx, nil); !errors.As(err, &terminated) {
		t.Fatalf("not terminated: %v", err)
	}
	runs := s.chain(first)
	equal(s, s.status(runs[1]), enumspb.WORKFLOW_EXECUTION_STATUS_FAILED)
	equal(s, s.status(runs[2]), enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	equal(s, s.status(runs[len(runs)-1]), enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED)
	fifth := s.started(runs[4])
	equal(s, decode[[]string](s, fifth.LastCompletionResult),
		[]string{"a page", "a late page, since the pencil broke", "a page"})
	equal(s, fifth.Initiator, enumspb.CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE)
	equal(s, fifth.CronSchedule, "@every 1s")
	equal(s, fifth.Attempt, int32(1))
	equal(s, fifth.FirstExecutionRunId, first)
}
