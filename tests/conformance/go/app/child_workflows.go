package app

import (
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// withChild names the next child after its parent.
func withChild(ctx workflow.Context, name string, options workflow.ChildWorkflowOptions) workflow.Context {
	options.WorkflowID = workflow.GetInfo(ctx).WorkflowExecution.ID + "-" + name
	return workflow.WithChildOptions(ctx, options)
}

func DelegateGreeting(ctx workflow.Context, name string) (greeting string, err error) {
	ctx = withChild(ctx, "greeting", workflow.ChildWorkflowOptions{})
	err = workflow.ExecuteChildWorkflow(ctx, FixedGreeting, name).Get(ctx, &greeting)
	return greeting, err
}

func DelegateOrder(ctx workflow.Context, order string) error {
	ctx = withChild(ctx, "order", workflow.ChildWorkflowOptions{})
	return workflow.ExecuteChildWorkflow(ctx, Refuse, order).Get(ctx, nil)
}

func DelegateRelay(ctx workflow.Context, runners int) (relay Relay, err error) {
	ctx = withChild(ctx, "relay", workflow.ChildWorkflowOptions{})
	err = workflow.ExecuteChildWorkflow(ctx, RunRelay, Relay{Left: runners}).Get(ctx, &relay)
	return relay, err
}

func DelegateStubbornly(ctx workflow.Context, wanted int32) (attempt int32, err error) {
	ctx = withChild(ctx, "job", workflow.ChildWorkflowOptions{RetryPolicy: quickRetry(0)})
	err = workflow.ExecuteChildWorkflow(ctx, SucceedOnRun, wanted).Get(ctx, &attempt)
	return attempt, err
}

// WaitForInbox returns the letters of its child, or ends as the child does.
func WaitForInbox(ctx workflow.Context, runTimeout time.Duration) (letters []string, err error) {
	ctx = withChild(ctx, "inbox", workflow.ChildWorkflowOptions{WorkflowRunTimeout: runTimeout})
	err = workflow.ExecuteChildWorkflow(ctx, Inbox).Get(ctx, &letters)
	return letters, err
}

// Linger goes only when it is told to, even when it is cancelled.
func Linger(ctx workflow.Context) (string, error) {
	workflow.GetSignalChannel(ctx, "go").Receive(ctx, nil)
	return "nobody cancelled me", ctx.Err()
}

// PassCancellationOn is cancelled while its child runs; how it treats the child is up to the argument. It, too, goes
// only when it is told to: Temporal forgets what a workflow asked for in its last task.
func PassCancellationOn(ctx workflow.Context, treatment string) error {
	hasLetGo := false
	err := workflow.SetQueryHandler(ctx, "let go", func() (bool, error) { return hasLetGo, nil })
	if err != nil {
		return err
	}
	childCtx := withChild(ctx, "linger", workflow.ChildWorkflowOptions{
		WaitForCancellation: true,
		ParentClosePolicy:   enumspb.PARENT_CLOSE_POLICY_ABANDON,
	})
	if treatment == "abandon" {
		childCtx, _ = workflow.NewDisconnectedContext(childCtx)
	}
	child := workflow.ExecuteChildWorkflow(childCtx, Linger)
	selector := workflow.NewSelector(ctx)
	selector.AddFuture(child, func(workflow.Future) { err = child.Get(ctx, nil) })
	if treatment != "wait" {
		selector.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) { err = ctx.Err() })
	}
	selector.Select(ctx)
	hasLetGo = true
	workflow.GetSignalChannel(ctx, "go").Receive(ctx, nil)
	return err
}

// DelegateUnlessTaken has an id for its child that somebody else may have used before.
func DelegateUnlessTaken(ctx workflow.Context, policy enumspb.WorkflowIdReusePolicy) (string, error) {
	ctx = withChild(ctx, "greeting", workflow.ChildWorkflowOptions{WorkflowIDReusePolicy: policy})
	var greeting string
	err := workflow.ExecuteChildWorkflow(ctx, FixedGreeting, "Bob").Get(ctx, &greeting)
	var taken *temporal.ChildWorkflowExecutionAlreadyStartedError
	if errors.As(err, &taken) {
		return "already started", nil
	}
	return greeting, err
}

// LeaveChildren starts a child of each close policy and leaves when it is told how.
func LeaveChildren(ctx workflow.Context) (string, error) {
	if workflow.GetInfo(ctx).ContinuedExecutionRunID != "" {
		return "left as new", nil
	}
	for _, policy := range []enumspb.ParentClosePolicy{
		enumspb.PARENT_CLOSE_POLICY_TERMINATE,
		enumspb.PARENT_CLOSE_POLICY_ABANDON,
		enumspb.PARENT_CLOSE_POLICY_REQUEST_CANCEL,
	} {
		childCtx := withChild(ctx, policy.String(), workflow.ChildWorkflowOptions{ParentClosePolicy: policy})
		err := workflow.ExecuteChildWorkflow(childCtx, Linger).GetChildWorkflowExecution().Get(ctx, nil)
		if err != nil {
			return "", err
		}
	}
	var way string
	workflow.GetSignalChannel(ctx, "leave").Receive(ctx, &way)
	if way == "as new" {
		return "", workflow.NewContinueAsNewError(ctx, LeaveChildren)
	}
	return "left " + way, nil
}

func TellSeat(ctx workflow.Context) (Seat, error) {
	return ownSeat(ctx), nil
}

// SeatChildren returns what children see that set no field of their priority, all of them, or one.
func SeatChildren(ctx workflow.Context) (seats []Seat, err error) {
	for number, priority := range []temporal.Priority{
		{},
		{PriorityKey: 4, FairnessKey: "bolt", FairnessWeight: 2.5},
		{PriorityKey: 1},
		{FairnessKey: "bolt"},
		{FairnessWeight: 2.5},
	} {
		childCtx := withChild(ctx, fmt.Sprint(number), workflow.ChildWorkflowOptions{Priority: priority})
		var seat Seat
		if err = workflow.ExecuteChildWorkflow(childCtx, TellSeat).Get(ctx, &seat); err != nil {
			return nil, err
		}
		seats = append(seats, seat)
	}
	return seats, nil
}
