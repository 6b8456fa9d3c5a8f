package conformance

import (
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"fairlead.test/conformance/app"
)

func registerGreeting(w worker.Worker) {
	w.RegisterWorkflow(app.FixedGreeting)
}

// startEagerly asks for the first task with the answer; the SDK does so only if a worker of this process can take it.
func (s stage) startEagerly(workflow any, args ...any) client.WorkflowRun {
	s.Helper()
	options := s.options()
	options.EnableEagerStart = true
	return s.startWith(options, workflow, args...)
}

func (s stage) wasEager(run client.WorkflowRun) bool {
	s.Helper()
	return s.history(run).Events[0].GetWorkflowExecutionStartedEventAttributes().GetEagerExecutionAccepted()
}

func TestAWorkflowThatIsStartedEagerlyRuns(t *testing.T) {
	s := newStage(t)
	defer s.work(registerGreeting)()
	run := s.startEagerly(app.FixedGreeting, "Ada")
	gives(s, run, "Hello, Ada!")
	equal(s, s.wasEager(run), true)
}

func TestAnEagerStartWithoutAWorkerWaitsForOne(t *testing.T) {
	s := newStage(t)
	run := s.startEagerly(app.FixedGreeting, "Ada")
	equal(s, s.wasEager(run), false)
	defer s.work(registerGreeting)()
	gives(s, run, "Hello, Ada!")
}

func TestAnEagerWorkflowHasAnOrdinaryHistory(t *testing.T) {
	s := newStage(t)
	defer s.work(registerInbox)()
	run := s.startEagerly(app.Inbox)
	s.signal(run, "deliver", "a letter")
	s.signal(run, "close", nil)
	gives(s, run, []string{"a letter"})
	equal(s, s.wasEager(run), true)
	replayer := worker.NewWorkflowReplayer()
	replayer.RegisterWorkflow(app.Inbox)
	s.check(replayer.ReplayWorkflowHistory(quiet, s.history(run)))
}
