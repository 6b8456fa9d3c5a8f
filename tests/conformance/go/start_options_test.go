package conformance

import (
	"errors"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"fairlead.test/conformance/app"
)

func refusesToStart(s stage, options client.StartWorkflowOptions) *serviceerror.WorkflowExecutionAlreadyStarted {
	s.Helper()
	options.WorkflowExecutionErrorWhenAlreadyStarted = true
	var refusal *serviceerror.WorkflowExecutionAlreadyStarted
	if _, err := server.ExecuteWorkflow(s.ctx, options, app.Inbox); !errors.As(err, &refusal) {
		s.Fatalf("got %v", err)
	}
	return refusal
}

func terminate(s stage, run client.WorkflowRun) {
	s.Helper()
	s.check(server.TerminateWorkflow(s.ctx, run.GetID(), run.GetRunID(), "the test is over"))
}

func TestARunningWorkflowIdCannotBeStartedAgain(t *testing.T) {
	s := newStage(t)
	run := s.start(app.Inbox)
	defer terminate(s, run)
	equal(s, refusesToStart(s, s.options()).RunId, run.GetRunID())
	// Unless told otherwise, the client makes the refusal a handle on the run that is there.
	equal(s, s.start(app.Inbox).GetRunID(), run.GetRunID())
}

func TestAClosedWorkflowIdMayBeUsedAgainByDefault(t *testing.T) {
	s := newStage(t)
	first := s.start(app.Inbox)
	terminate(s, first)
	second := s.start(app.Inbox)
	defer terminate(s, second)
	if first.GetRunID() == second.GetRunID() {
		t.Fatal("the second start joined the closed run")
	}
}

func TestRejectDuplicateRefusesTheIdOfAClosedWorkflow(t *testing.T) {
	s := newStage(t)
	terminate(s, s.start(app.Inbox))
	options := s.options()
	options.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
	refusesToStart(s, options)
}

func TestUseExistingJoinsTheRunningWorkflow(t *testing.T) {
	s := newStage(t)
	first := s.start(app.Inbox)
	defer terminate(s, first)
	options := s.options()
	options.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	options.WorkflowExecutionErrorWhenAlreadyStarted = true
	equal(s, s.startWith(options, app.Inbox).GetRunID(), first.GetRunID())
}

func TestTerminateExistingReplacesTheRunningWorkflow(t *testing.T) {
	s := newStage(t)
	first := s.start(app.Inbox)
	options := s.options()
	options.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING
	second := s.startWith(options, app.Inbox)
	defer terminate(s, second)
	equal(s, s.status(first), enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED)
	equal(s, s.status(second), enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING)
}
