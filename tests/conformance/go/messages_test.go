package conformance

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/worker"

	"fairlead.test/conformance/app"
)

func registerInbox(w worker.Worker) {
	w.RegisterWorkflow(app.Inbox)
}

func letters() (letters []string) {
	for number := range 10 {
		letters = append(letters, fmt.Sprintf("letter %d", number))
	}
	return letters
}

func TestSignalsArriveOnceEachAndInOrder(t *testing.T) {
	s := newStage(t)
	defer s.work(registerInbox)()
	run := s.start(app.Inbox)
	for _, letter := range letters() {
		s.signal(run, "deliver", letter)
	}
	s.signal(run, "close", nil)
	gives(s, run, letters())
	equal(s, count(s.eventNames(run), "WorkflowExecutionSignaled"), 11)
}

func TestSignalWithStartDeliversToANewAndToARunningWorkflow(t *testing.T) {
	s := newStage(t)
	first, err := server.SignalWithStartWorkflow(s.ctx, s.name, "deliver", "one", s.options(), app.Inbox)
	s.check(err)
	second, err := server.SignalWithStartWorkflow(s.ctx, s.name, "deliver", "two", s.options(), app.Inbox)
	s.check(err)
	equal(s, first.GetRunID(), second.GetRunID())
	defer s.work(registerInbox)()
	s.signal(first, "close", nil)
	gives(s, first, []string{"one", "two"})
}

func TestSignallingAClosedWorkflowIsRefusedAsNotFound(t *testing.T) {
	s := newStage(t)
	defer s.work(registerInbox)()
	run := s.start(app.Inbox)
	s.signal(run, "close", nil)
	gives(s, run, []string{})
	var notFound *serviceerror.NotFound
	if err := server.SignalWorkflow(s.ctx, run.GetID(), "", "deliver", "too late"); !errors.As(err, &notFound) {
		t.Fatalf("got %v", err)
	}
}

func TestARunningAndACompletedWorkflowAnswerQueries(t *testing.T) {
	s := newStage(t)
	defer s.work(registerInbox)()
	run := s.start(app.Inbox)
	s.signal(run, "deliver", "one")
	var counted int
	s.query(run, &counted, "count")
	equal(s, counted, 1)

	s.signal(run, "close", nil)
	gives(s, run, []string{"one"})
	var letter string
	s.query(run, &letter, "letter", 0)
	equal(s, letter, "one")
}

func TestAQueryThatFailsOrIsUnknownTellsTheCallerWhy(t *testing.T) {
	s := newStage(t)
	defer s.work(registerInbox)()
	run := s.start(app.Inbox)
	var failed *serviceerror.QueryFailed
	_, err := server.QueryWorkflow(s.ctx, run.GetID(), "", "letter", 7)
	if !errors.As(err, &failed) || !strings.Contains(failed.Message, "there is no letter 7") {
		t.Fatalf("got %v", err)
	}
	_, err = server.QueryWorkflow(s.ctx, run.GetID(), "", "weather")
	if !errors.As(err, &failed) || !strings.Contains(failed.Message, "weather") {
		t.Fatalf("got %v", err)
	}
	s.check(server.TerminateWorkflow(s.ctx, run.GetID(), "", "the test is over"))
}
