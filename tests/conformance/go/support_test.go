package conformance

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
)

const waitMax = 30 * time.Second

var (
	server client.Client
	quiet  = log.NewStructuredLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
)

func TestMain(m *testing.M) {
	namespace := os.Getenv("FAIRLEAD_NAMESPACE")
	if namespace == "" {
		namespace = client.DefaultNamespace
	}
	var err error
	server, err = client.Dial(client.Options{
		HostPort:  os.Getenv("FAIRLEAD_ADDRESS"),
		Namespace: namespace,
		Logger:    quiet,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot reach the server:", err)
		os.Exit(1)
	}
	code := m.Run()
	server.Close()
	os.Exit(code)
}

// stage is one test's task queue and workflow id, so that no run of a test meets another run.
type stage struct {
	*testing.T
	ctx  context.Context
	name string
}

func newStage(t *testing.T) stage {
	ctx, cancel := context.WithTimeout(context.Background(), 2*waitMax)
	t.Cleanup(cancel)
	return stage{T: t, ctx: ctx, name: "conformance-go-" + uuid.NewString()}
}

// work starts a worker that registers what it is told to; the returned function stops it.
func (s stage) work(register func(worker.Worker)) (stop func()) {
	s.Helper()
	return s.workOn(s.name, worker.Options{MaxHeartbeatThrottleInterval: 100 * time.Millisecond}, register)
}

func (s stage) workOn(taskQueue string, options worker.Options, register func(worker.Worker)) (stop func()) {
	s.Helper()
	w := worker.New(server, taskQueue, options)
	register(w)
	if err := w.Start(); err != nil {
		s.Fatalf("the worker does not start: %v", err)
	}
	return w.Stop
}

func (s stage) options() client.StartWorkflowOptions {
	return client.StartWorkflowOptions{ID: s.name, TaskQueue: s.name}
}

func (s stage) start(workflow any, args ...any) client.WorkflowRun {
	s.Helper()
	return s.startWith(s.options(), workflow, args...)
}

func (s stage) startWith(options client.StartWorkflowOptions, workflow any, args ...any) client.WorkflowRun {
	s.Helper()
	run, err := server.ExecuteWorkflow(s.ctx, options, workflow, args...)
	s.check(err)
	return run
}

func (s stage) signal(run client.WorkflowRun, name string, argument any) {
	s.Helper()
	s.check(server.SignalWorkflow(s.ctx, run.GetID(), run.GetRunID(), name, argument))
}

func (s stage) query(run client.WorkflowRun, result any, name string, args ...any) {
	s.Helper()
	answer, err := server.QueryWorkflow(s.ctx, run.GetID(), run.GetRunID(), name, args...)
	s.check(err)
	s.check(answer.Get(result))
}

// gives checks a workflow's result.
func gives[T any](s stage, run client.WorkflowRun, want T) {
	s.Helper()
	var got T
	s.check(run.Get(s.ctx, &got))
	equal(s, got, want)
}

func equal[T any](s stage, got, want T) {
	s.Helper()
	if !reflect.DeepEqual(got, want) {
		s.Fatalf("got %v, want %v", got, want)
	}
}

func (s stage) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("unexpected error: %v", err)
	}
}

func (s stage) history(run client.WorkflowRun) *historypb.History {
	s.Helper()
	history := &historypb.History{}
	pages := server.GetWorkflowHistory(
		s.ctx, run.GetID(), run.GetRunID(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for pages.HasNext() {
		event, err := pages.Next()
		s.check(err)
		history.Events = append(history.Events, event)
	}
	return history
}

func (s stage) eventNames(run client.WorkflowRun) (names []string) {
	s.Helper()
	for _, event := range s.history(run).Events {
		names = append(names, event.EventType.String())
	}
	return names
}

// until waits for what only the server can tell, with a generous bound.
func (s stage) until(what string, isSo func() bool) {
	s.Helper()
	for deadline := time.Now().Add(waitMax); !isSo(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("it never came so far that %s", what)
		}
	}
}

func (s stage) untilEvent(run client.WorkflowRun, name string) {
	s.Helper()
	s.until("the history shows "+name, func() bool { return contains(s.eventNames(run), name) })
}

func (s stage) status(run client.WorkflowRun) enumspb.WorkflowExecutionStatus {
	s.Helper()
	description, err := server.DescribeWorkflowExecution(s.ctx, run.GetID(), run.GetRunID())
	s.check(err)
	return description.GetWorkflowExecutionInfo().GetStatus()
}

func contains(names []string, name string) bool {
	return count(names, name) > 0
}

func count(names []string, name string) (n int) {
	for _, candidate := range names {
		if candidate == name {
			n++
		}
	}
	return n
}

// receive waits for a message from an activity in this process, with a generous bound.
func receive[T any](s stage, channel chan T) (message T) {
	s.Helper()
	select {
	case message = <-channel:
	case <-time.After(waitMax):
		s.Fatal("the activity never reported")
	}
	return message
}
