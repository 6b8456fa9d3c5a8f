package conformance

import (
	"errors"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"fairlead.test/conformance/app"
)

func registerChildren(w worker.Worker) {
	registerChains(w)
	w.RegisterWorkflow(app.FixedGreeting)
	w.RegisterWorkflow(app.Inbox)
	w.RegisterWorkflow(app.Linger)
	w.RegisterWorkflow(app.TellSeat)
	registerParents(w)
}

func registerParents(r worker.WorkflowRegistry) {
	r.RegisterWorkflow(app.DelegateGreeting)
	r.RegisterWorkflow(app.DelegateOrder)
	r.RegisterWorkflow(app.DelegateRelay)
	r.RegisterWorkflow(app.DelegateStubbornly)
	r.RegisterWorkflow(app.WaitForInbox)
	r.RegisterWorkflow(app.PassCancellationOn)
	r.RegisterWorkflow(app.DelegateUnlessTaken)
	r.RegisterWorkflow(app.LeaveChildren)
	r.RegisterWorkflow(app.SeatChildren)
	r.RegisterWorkflow(app.WriteToChild)
	r.RegisterWorkflow(app.WriteToNeighbour)
	r.RegisterWorkflow(app.CancelNeighbour)
}

func (s stage) child(name string) client.WorkflowRun {
	return server.GetWorkflow(s.ctx, s.name+"-"+name, "")
}

func (s stage) replays(run client.WorkflowRun) {
	s.Helper()
	replayer := worker.NewWorkflowReplayer()
	registerParents(replayer)
	// The parents name their children after themselves.
	options := worker.ReplayWorkflowHistoryOptions{
		OriginalExecution: workflow.Execution{ID: run.GetID(), RunID: run.GetRunID()},
	}
	s.check(replayer.ReplayWorkflowHistoryWithOptions(quiet, s.history(run), options))
}

func (s stage) childFailure(run client.WorkflowRun) *temporal.ChildWorkflowExecutionError {
	s.Helper()
	var failure *temporal.ChildWorkflowExecutionError
	if err := run.Get(s.ctx, nil); !errors.As(err, &failure) {
		s.Fatalf("not the failure of a child: %v", err)
	}
	return failure
}

func TestAChildCompletesAndItsParentGetsTheResult(t *testing.T) {
	s := newStage(t)
	defer s.work(registerChildren)()
	run := s.start(app.DelegateGreeting, "Ada")
	gives(s, run, "Hello, Ada!")
	names := s.eventNames(run)
	equal(s, count(names, "StartChildWorkflowExecutionInitiated"), 1)
	equal(s, count(names, "ChildWorkflowExecutionStarted"), 1)
	equal(s, count(names, "ChildWorkflowExecutionCompleted"), 1)
	s.replays(run)
}

func TestAFailedChildIsTheCauseOfItsParentsFailure(t *testing.T) {
	s := newStage(t)
	defer s.work(registerChildren)()
	run := s.start(app.DelegateOrder, "A-17")
	failure := s.childFailure(run)
	equal(s, failure.WorkflowID(), s.name+"-order")
	equal(s, failure.WorkflowType(), "Refuse")
	equal(s, failure.RunID(), s.child("order").GetRunID())
	var cause *temporal.ApplicationError
	if !errors.As(failure, &cause) {
		t.Fatalf("not an application error: %v", failure)
	}
	equal(s, cause.Type(), "OutOfStock")
	equal(s, cause.Message(), "order A-17 is out of stock")
	s.replays(run)
}

func TestATerminatedChildIsTheCauseOfItsParentsFailure(t *testing.T) {
	s := newStage(t)
	defer s.work(registerChildren)()
	run := s.start(app.WaitForInbox, time.Duration(0))
	s.untilEvent(run, "ChildWorkflowExecutionStarted")
	s.check(server.TerminateWorkflow(s.ctx, s.name+"-inbox", "", "spring cleaning"))
	var terminated *temporal.TerminatedError
	if failure := s.childFailure(run); !errors.As(failure, &terminated) {
		t.Fatalf("not terminated: %v", failure)
	}
}

func TestAChildThatTimesOutIsTheCauseOfItsParentsFailure(t *testing.T) {
	s := newStage(t)
	defer s.work(registerChildren)()
	run := s.start(app.WaitForInbox, time.Second)
	var timeout *temporal.TimeoutError
	if failure := s.childFailure(run); !errors.As(failure, &timeout) {
		t.Fatalf("not timed out: %v", failure)
	}
	equal(s, s.status(s.child("inbox")), enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT)
}

// cancelParent cancels a parent whose child is at work.
func (s stage) cancelParent(treatment string) (parent, child client.WorkflowRun) {
	s.Helper()
	parent = s.start(app.PassCancellationOn, treatment)
	s.untilEvent(parent, "ChildWorkflowExecutionStarted")
	child = s.child("linger")
	s.untilEvent(child, "WorkflowTaskCompleted")
	s.check(server.CancelWorkflow(s.ctx, parent.GetID(), parent.GetRunID()))
	return parent, child
}

func (s stage) hasLetGo(parent client.WorkflowRun) (hasLetGo bool) {
	s.Helper()
	s.query(parent, &hasLetGo, "let go")
	return hasLetGo
}

func (s stage) endsAsCancelled(run client.WorkflowRun) {
	s.Helper()
	s.signal(run, "go", nil)
	var cancelled *temporal.CanceledError
	if err := run.Get(s.ctx, nil); !errors.As(err, &cancelled) {
		s.Fatalf("not cancelled: %v", err)
	}
	equal(s, s.status(run), enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED)
}

func TestAParentThatWaitsForACancellationOutlivesItsChild(t *testing.T) {
	s := newStage(t)
	defer s.work(registerChildren)()
	parent, child := s.cancelParent("wait")
	s.untilEvent(child, "WorkflowExecutionCancelRequested")
	s.untilEvent(parent, "ExternalWorkflowExecutionCancelRequested")
	equal(s, s.hasLetGo(parent), false)
	s.endsAsCancelled(child)
	s.endsAsCancelled(parent)
	equal(s, contains(s.eventNames(parent), "ChildWorkflowExecutionCanceled"), true)
	s.replays(parent)
}

func TestAParentThatOnlyTriesToCancelDoesNotWaitForItsChild(t *testing.T) {
	s := newStage(t)
	defer s.work(registerChildren)()
	parent, child := s.cancelParent("try")
	s.untilEvent(child, "WorkflowExecutionCancelRequested")
	equal(s, s.hasLetGo(parent), true)
	s.endsAsCancelled(parent)
	equal(s, s.status(child), enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING)
	s.endsAsCancelled(child)
}

func TestAnAbandonedChildNeverHearsOfTheCancellation(t *testing.T) {
	s := newStage(t)
	defer s.work(registerChildren)()
	parent, child := s.cancelParent("abandon")
	s.endsAsCancelled(parent)
	s.signal(child, "go", nil)
	gives(s, child, "nobody cancelled me")
	equal(s, contains(s.eventNames(child), "WorkflowExecutionCancelRequested"), false)
}

// startGreeting takes the id that DelegateUnlessTaken has in mind for its child.
func (s stage) startGreeting(workflow any, args ...any) client.WorkflowRun {
	s.Helper()
	return s.startWith(client.StartWorkflowOptions{ID: s.name + "-greeting", TaskQueue: s.name}, workflow, args...)
}

func TestAChildWhoseIdIsTakenIsRefusedAsAlreadyStarted(t *testing.T) {
	s := newStage(t)
	defer s.work(registerChildren)()
	other := s.startGreeting(app.Linger)
	run := s.start(app.DelegateUnlessTaken, enumspb.WORKFLOW_ID_REUSE_POLICY_UNSPECIFIED)
	gives(s, run, "already started")
	equal(s, contains(s.eventNames(run), "StartChildWorkflowExecutionFailed"), true)
	s.replays(run)
	s.signal(other, "go", nil)
	gives(s, other, "nobody cancelled me")
}

func TestTheReusePolicyDecidesWhetherAFinishedWorkflowsIdIsForAChild(t *testing.T) {
	for policy, outcome := range map[enumspb.WorkflowIdReusePolicy]string{
		enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE:             "Hello, Bob!",
		enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY: "already started",
		enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE:            "already started",
	} {
		s := newStage(t)
		stop := s.work(registerChildren)
		gives(s, s.startGreeting(app.FixedGreeting, "Ada"), "Hello, Ada!")
		gives(s, s.start(app.DelegateUnlessTaken, policy), outcome)
		stop()
	}
}

func TestAChildThatTerminatesIfRunningReplacesAnotherWorkflow(t *testing.T) {
	s := newStage(t)
	defer s.work(registerChildren)()
	other := s.startGreeting(app.Linger)
	run := s.start(app.DelegateUnlessTaken, enumspb.WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING)
	gives(s, run, "Hello, Bob!")
	equal(s, s.status(other), enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED)
}

// leaves lets a parent of three children leave and looks at what becomes of each of them.
func (s stage) leaves(way string) {
	s.Helper()
	parent := s.start(app.LeaveChildren)
	s.until("three children run", func() bool {
		return count(s.eventNames(parent), "ChildWorkflowExecutionStarted") == 3
	})
	if way == "by force" {
		s.check(server.TerminateWorkflow(s.ctx, s.name, "", "the test wants it"))
	} else {
		s.signal(parent, "leave", way)
		gives(s, parent, "left "+way)
	}
	terminated, abandoned, cancelled := s.child("Terminate"), s.child("Abandon"), s.child("RequestCancel")
	s.until("one child is terminated", func() bool {
		return s.status(terminated) == enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED
	})
	s.untilEvent(cancelled, "WorkflowExecutionCancelRequested")
	s.endsAsCancelled(cancelled)
	s.signal(abandoned, "go", nil)
	gives(s, abandoned, "nobody cancelled me")
}

func TestAParentThatCompletesTreatsEachChildByItsClosePolicy(t *testing.T) {
	s := newStage(t)
	defer s.work(registerChildren)()
	s.leaves("for good")
}

func TestATerminatedParentTreatsEachChildByItsClosePolicy(t *testing.T) {
	s := newStage(t)
	defer s.work(registerChildren)()
	s.leaves("by force")
}

func TestAParentThatContinuesAsNewTreatsEachChildByItsClosePolicy(t *testing.T) {
	s := newStage(t)
	defer s.work(registerChildren)()
	s.leaves("as new")
}

func TestAChildThatContinuesAsNewIsOneChild(t *testing.T) {
	s := newStage(t)
	defer s.work(registerChildren)()
	run := s.start(app.DelegateRelay, 3)
	var relay app.Relay
	s.check(run.Get(s.ctx, &relay))
	equal(s, len(relay.RunIDs), 3)
	names := s.eventNames(run)
	equal(s, count(names, "ChildWorkflowExecutionStarted"), 1)
	equal(s, count(names, "ChildWorkflowExecutionCompleted"), 1)
	// The last run still knows whose child it is.
	description, err := server.DescribeWorkflowExecution(s.ctx, s.name+"-relay", relay.RunIDs[2])
	s.check(err)
	equal(s, description.WorkflowExecutionInfo.ParentExecution.GetWorkflowId(), s.name)
	equal(s, description.WorkflowExecutionInfo.RootExecution.GetWorkflowId(), s.name)
}

func TestAChildThatIsRetriedIsOneChild(t *testing.T) {
	s := newStage(t)
	defer s.work(registerChildren)()
	run := s.start(app.DelegateStubbornly, int32(3))
	gives(s, run, int32(3))
	names := s.eventNames(run)
	equal(s, count(names, "ChildWorkflowExecutionStarted"), 1)
	equal(s, contains(names, "ChildWorkflowExecutionFailed"), false)
}

func TestAChildInheritsEachFieldOfItsPriorityThatItDoesNotSet(t *testing.T) {
	s := newStage(t)
	defer s.work(registerChildren)()
	options := s.options()
	options.Priority = temporal.Priority{PriorityKey: 2, FairnessKey: "t", FairnessWeight: 4}
	gives(s, s.startWith(options, app.SeatChildren), []app.Seat{
		{Level: 2, Tenant: "t", Weight: 4},
		{Level: 4, Tenant: "bolt", Weight: 2.5},
		{Level: 1, Tenant: "t", Weight: 4},
		{Level: 2, Tenant: "bolt", Weight: 4},
		{Level: 2, Tenant: "t", Weight: 2.5},
	})
}

func TestADescriptionShowsPendingChildrenTheirParentAndTheirRoot(t *testing.T) {
	s := newStage(t)
	defer s.work(registerChildren)()
	run := s.start(app.WaitForInbox, time.Duration(0))
	s.untilEvent(run, "ChildWorkflowExecutionStarted")
	child := s.child("inbox")

	parent, err := server.DescribeWorkflowExecution(s.ctx, s.name, run.GetRunID())
	s.check(err)
	equal(s, len(parent.PendingChildren), 1)
	equal(s, parent.PendingChildren[0].WorkflowId, child.GetID())
	equal(s, parent.PendingChildren[0].RunId, child.GetRunID())
	equal(s, parent.PendingChildren[0].WorkflowTypeName, "Inbox")
	described, err := server.DescribeWorkflowExecution(s.ctx, child.GetID(), "")
	s.check(err)
	equal(s, described.WorkflowExecutionInfo.ParentExecution.GetWorkflowId(), s.name)
	equal(s, described.WorkflowExecutionInfo.ParentExecution.GetRunId(), run.GetRunID())
	equal(s, described.WorkflowExecutionInfo.RootExecution.GetWorkflowId(), s.name)
	equal(s, described.WorkflowExecutionInfo.RootExecution.GetRunId(), run.GetRunID())

	s.signal(child, "close", nil)
	gives(s, run, []string{})
	parent, err = server.DescribeWorkflowExecution(s.ctx, s.name, run.GetRunID())
	s.check(err)
	equal(s, len(parent.PendingChildren), 0)
}
