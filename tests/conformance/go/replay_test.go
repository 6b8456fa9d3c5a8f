package conformance

import (
	"fmt"
	"testing"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"fairlead.test/conformance/app"
)

func TestAWaitingWorkflowGoesOnUnderANewWorker(t *testing.T) {
	s := newStage(t)
	stopFirst := s.work(registerInbox)
	run := s.start(app.Inbox)
	s.signal(run, "deliver", "to the first worker")
	var counted int
	s.query(run, &counted, "count")
	equal(s, counted, 1)
	stopFirst()

	defer s.work(registerInbox)()
	s.signal(run, "deliver", "to the second worker")
	s.signal(run, "close", nil)
	gives(s, run, []string{"to the first worker", "to the second worker"})
}

func registerJourney(version any) func(worker.Worker) {
	return func(w worker.Worker) {
		w.RegisterWorkflowWithOptions(version, workflow.RegisterOptions{Name: "Journey"})
		w.RegisterActivity(app.Greet)
	}
}

func TestARunFromBeforeAChangeKeepsItsSideEffectAndItsOldCodePath(t *testing.T) {
	s := newStage(t)
	stopOld := s.work(registerJourney(app.JourneyBefore))
	run := s.start("Journey")
	var ticket int64
	s.query(run, &ticket, "ticket")
	stopOld()

	defer s.work(registerJourney(app.JourneyAfter))()
	s.signal(run, "go on", nil)
	gives(s, run, fmt.Sprintf("old road %d", ticket))
}

func TestARunFromAfterAChangeRecordsItsVersionAndTakesTheNewPath(t *testing.T) {
	s := newStage(t)
	defer s.work(registerJourney(app.JourneyAfter))()
	run := s.start("Journey")
	s.signal(run, "go on", nil)
	gives(s, run, "new road Hello, traveller!")
	// One marker is the side effect's, the other the version's.
	equal(s, count(s.eventNames(run), "MarkerRecorded"), 2)
}

func TestADownloadedHistoryReplaysWithoutNonDeterminism(t *testing.T) {
	s := newStage(t)
	defer s.work(registerHello)()
	run := s.start(app.Hello, "Ada")
	gives(s, run, "Hello, Ada!")
	replayer := worker.NewWorkflowReplayer()
	replayer.RegisterWorkflow(app.Hello)
	s.check(replayer.ReplayWorkflowHistory(quiet, s.history(run)))
}

func TestAHistoryOfAThousandEventsHasDenseIdsAndReplays(t *testing.T) {
	s := newStage(t)
	defer s.work(func(w worker.Worker) {
		w.RegisterWorkflow(app.ManyActivities)
		w.RegisterActivity(app.Greet)
	})()
	run := s.start(app.ManyActivities, 17, 20)
	gives(s, run, 340)

	history := s.history(run)
	if len(history.Events) < 1000 {
		t.Fatalf("only %d events", len(history.Events))
	}
	for index, event := range history.Events {
		equal(s, event.EventId, int64(index+1))
	}
	replayer := worker.NewWorkflowReplayer()
	replayer.RegisterWorkflow(app.ManyActivities)
	s.check(replayer.ReplayWorkflowHistory(quiet, history))
}
