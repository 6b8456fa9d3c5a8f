package conformance

import (
	"errors"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"fairlead.test/conformance/app"
)

func registerNeighbours(w worker.Worker) {
	registerChildren(w)
	w.RegisterWorkflow(app.Sleep)
}

func (s stage) startNeighbour(workflow any, args ...any) client.WorkflowRun {
	s.Helper()
	return s.startWith(client.StartWorkflowOptions{ID: s.name + "-neighbour", TaskQueue: s.name}, workflow, args...)
}

func TestAParentSignalsItsChild(t *testing.T) {
	s := newStage(t)
	defer s.work(registerNeighbours)()
	run := s.start(app.WriteToChild, letters())
	gives(s, run, letters())
	s.replays(run)
}

func TestAWorkflowSignalsItsNeighbour(t *testing.T) {
	s := newStage(t)
	defer s.work(registerNeighbours)()
	neighbour := s.startNeighbour(app.Inbox)
	run := s.start(app.WriteToNeighbour, neighbour.GetID(), letters())
	s.check(run.Get(s.ctx, nil))
	s.signal(neighbour, "close", nil)
	gives(s, neighbour, letters())

	for _, event := range s.history(neighbour).Events {
		if signal := event.GetWorkflowExecutionSignaledEventAttributes(); signal.GetSignalName() == "deliver" {
			equal(s, signal.ExternalWorkflowExecution.GetWorkflowId(), s.name)
			equal(s, signal.ExternalWorkflowExecution.GetRunId(), run.GetRunID())
		}
	}
	equal(s, count(s.eventNames(run), "ExternalWorkflowExecutionSignaled"), len(letters()))
	s.replays(run)
}

func (s stage) failsAsUnknown(run client.WorkflowRun) {
	s.Helper()
	var cause *temporal.ApplicationError
	if err := run.Get(s.ctx, nil); !errors.As(err, &cause) {
		s.Fatalf("not an application error: %v", err)
	}
	equal(s, cause.Type(), "UnknownExternalWorkflowExecutionError")
}

func TestASignalToAWorkflowThatIsNotThereFails(t *testing.T) {
	s := newStage(t)
	defer s.work(registerNeighbours)()
	run := s.start(app.WriteToNeighbour, "nobody", letters())
	s.failsAsUnknown(run)
	equal(s, count(s.eventNames(run), "SignalExternalWorkflowExecutionFailed"), 1)
	s.replays(run)
}

func TestAWorkflowCancelsItsNeighbour(t *testing.T) {
	s := newStage(t)
	defer s.work(registerNeighbours)()
	neighbour := s.startNeighbour(app.Sleep, time.Hour)
	run := s.start(app.CancelNeighbour, neighbour.GetID())
	s.check(run.Get(s.ctx, nil))
	var cancelled *temporal.CanceledError
	if err := neighbour.Get(s.ctx, nil); !errors.As(err, &cancelled) {
		t.Fatalf("not cancelled: %v", err)
	}
	equal(s, s.status(neighbour), enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED)
	s.replays(run)
}

func TestCancellingAWorkflowThatIsNotThereFails(t *testing.T) {
	s := newStage(t)
	defer s.work(registerNeighbours)()
	run := s.start(app.CancelNeighbour, "nobody")
	s.failsAsUnknown(run)
	equal(s, count(s.eventNames(run), "RequestCancelExternalWorkflowExecutionFailed"), 1)
	s.replays(run)
}
