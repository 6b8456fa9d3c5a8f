package conformance

import (
	"context"
	"errors"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"fairlead.test/conformance/app"
)

func (s stage) activityOptions() client.StartActivityOptions {
	return client.StartActivityOptions{ID: s.name, TaskQueue: s.name, StartToCloseTimeout: time.Minute}
}

func (s stage) execute(options client.StartActivityOptions, what any, args ...any) client.ActivityHandle {
	s.Helper()
	handle, err := server.ExecuteActivity(s.ctx, options, what, args...)
	s.check(err)
	return handle
}

func (s stage) activityStatus(handle client.ActivityHandle) enumspb.ActivityExecutionStatus {
	s.Helper()
	told, err := handle.Describe(s.ctx, client.DescribeActivityOptions{})
	s.check(err)
	return told.Status
}

func TestAnActivityWithoutAWorkflowGivesItsResult(t *testing.T) {
	s := newStage(t)
	defer s.work(func(w worker.Worker) { w.RegisterActivity(app.Greet) })()
	handle := s.execute(s.activityOptions(), app.Greet, "Ada")
	var greeting string
	s.check(handle.Get(s.ctx, &greeting))
	equal(s, greeting, "Hello, Ada!")
	equal(s, s.activityStatus(handle), enumspb.ACTIVITY_EXECUTION_STATUS_COMPLETED)
}

func TestAnActivityWithoutAWorkflowIsTriedAgain(t *testing.T) {
	s := newStage(t)
	defer s.work(func(w worker.Worker) { w.RegisterActivity(app.SucceedOnAttempt) })()
	options := s.activityOptions()
	options.RetryPolicy = &temporal.RetryPolicy{InitialInterval: 10 * time.Millisecond}
	handle := s.execute(options, app.SucceedOnAttempt, int32(3))
	var attempt int32
	s.check(handle.Get(s.ctx, &attempt))
	equal(s, attempt, int32(3))
}

func TestAnActivityWithoutAWorkflowIsCanceledByAHeartbeat(t *testing.T) {
	s := newStage(t)
	watched := app.NewWatched()
	defer s.work(func(w worker.Worker) { w.RegisterActivity(watched) })()
	options := s.activityOptions()
	options.HeartbeatTimeout = time.Minute
	handle := s.execute(options, watched.HeartbeatUntilCancelled)
	<-watched.Started
	s.check(handle.Cancel(s.ctx, client.CancelActivityOptions{Reason: "enough"}))
	var canceled *temporal.CanceledError
	if err := handle.Get(s.ctx, nil); !errors.As(err, &canceled) {
		s.Fatalf("not canceled: %v", err)
	}
	equal(s, s.activityStatus(handle), enumspb.ACTIVITY_EXECUTION_STATUS_CANCELED)
}

func TestAnActivityWithoutAWorkflowIsTerminated(t *testing.T) {
	s := newStage(t)
	handle := s.execute(s.activityOptions(), app.Greet, "Ada")
	s.check(handle.Terminate(s.ctx, client.TerminateActivityOptions{Reason: "enough"}))
	var terminated *temporal.TerminatedError
	if err := handle.Get(s.ctx, nil); !errors.As(err, &terminated) {
		s.Fatalf("not terminated: %v", err)
	}
}

func TestTheIdOfAnActivityWithoutAWorkflowIsTaken(t *testing.T) {
	s := newStage(t)
	first := s.execute(s.activityOptions(), app.Greet, "Ada")
	_, err := server.ExecuteActivity(s.ctx, s.activityOptions(), app.Greet, "Bob")
	var taken *serviceerror.ActivityExecutionAlreadyStarted
	if !errors.As(err, &taken) {
		s.Fatalf("not refused: %v", err)
	}
	equal(s, taken.RunId, first.GetRunID())
	options := s.activityOptions()
	options.ActivityIDConflictPolicy = enumspb.ACTIVITY_ID_CONFLICT_POLICY_USE_EXISTING
	equal(s, s.execute(options, app.Greet, "Bob").GetRunID(), first.GetRunID())
}

func TestAnActivityWithoutAWorkflowKnowsIt(t *testing.T) {
	s := newStage(t)
	look := func(ctx context.Context) ([]string, error) {
		info := activity.GetInfo(ctx)
		return []string{info.WorkflowExecution.ID, info.ActivityID, info.ActivityRunID}, nil
	}
	defer s.work(func(w worker.Worker) {
		w.RegisterActivityWithOptions(look, activity.RegisterOptions{Name: "look"})
	})()
	handle := s.execute(s.activityOptions(), "look")
	var seen []string
	s.check(handle.Get(s.ctx, &seen))
	equal(s, seen, []string{"", handle.GetID(), handle.GetRunID()})
}
