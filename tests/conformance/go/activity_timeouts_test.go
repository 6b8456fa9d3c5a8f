package conformance

import (
	"errors"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"fairlead.test/conformance/app"
)

func TestHeartbeatDetailsSurviveARetry(t *testing.T) {
	s := newStage(t)
	defer s.work(func(w worker.Worker) {
		w.RegisterWorkflow(app.ResumeByHeartbeat)
		w.RegisterActivity(app.ResumeFromHeartbeat)
	})()
	gives(s, s.start(app.ResumeByHeartbeat), 3)
}

func timesOut(t *testing.T, timeout string, want enumspb.TimeoutType) {
	t.Helper()
	s := newStage(t)
	defer s.work(func(w worker.Worker) {
		w.RegisterWorkflow(app.TimeOut)
		w.RegisterActivity(app.OutliveEveryTimeout)
	})()
	run := s.start(app.TimeOut, timeout)
	var timeoutError *temporal.TimeoutError
	if err := run.Get(s.ctx, nil); !errors.As(err, &timeoutError) {
		t.Fatalf("not a timeout: %v", err)
	}
	equal(s, timeoutError.TimeoutType(), want)
	equal(s, contains(s.eventNames(run), "ActivityTaskTimedOut"), true)
}

func TestASilentActivityMeetsItsHeartbeatTimeout(t *testing.T) {
	timesOut(t, "heartbeat", enumspb.TIMEOUT_TYPE_HEARTBEAT)
}

func TestASlowActivityMeetsItsStartToCloseTimeout(t *testing.T) {
	timesOut(t, "start to close", enumspb.TIMEOUT_TYPE_START_TO_CLOSE)
}

func TestAnActivityNobodyPollsForMeetsItsScheduleToStartTimeout(t *testing.T) {
	timesOut(t, "schedule to start", enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START)
}

func TestCancellingAWorkflowReachesItsHeartbeatingActivity(t *testing.T) {
	s := newStage(t)
	watched := app.NewWatched()
	defer s.work(func(w worker.Worker) {
		w.RegisterWorkflow(app.CancelActivity)
		w.RegisterActivity(watched)
	})()
	run := s.start(app.CancelActivity)
	receive(s, watched.Started)
	s.check(server.CancelWorkflow(s.ctx, run.GetID(), run.GetRunID()))
	receive(s, watched.Cancelled)
	var cancelled *temporal.CanceledError
	if err := run.Get(s.ctx, nil); !errors.As(err, &cancelled) {
		t.Fatalf("not cancelled: %v", err)
	}
	names := s.eventNames(run)
	equal(s, contains(names, "ActivityTaskCancelRequested"), true)
	equal(s, contains(names, "ActivityTaskCanceled"), true)
	equal(s, names[len(names)-1], "WorkflowExecutionCanceled")
}
