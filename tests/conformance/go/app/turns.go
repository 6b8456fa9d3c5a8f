package app

import (
	"context"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Turns holds an activity that tells the test, which runs in the worker's process, whose turn it was.
type Turns struct {
	Taken chan string
}

func NewTurns() *Turns {
	return &Turns{Taken: make(chan string, 100)}
}

func (t *Turns) TakeTurn(_ context.Context, name string) error {
	t.Taken <- name
	return nil
}

type Errand struct {
	Name     string
	Priority temporal.Priority
}

// VisitOnce takes its turn in its first task: that is where a local activity runs.
func VisitOnce(ctx workflow.Context, name string) error {
	var turns *Turns
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: time.Minute})
	return workflow.ExecuteLocalActivity(ctx, turns.TakeTurn, name).Get(ctx, nil)
}

// RunErrands schedules all errands at once, as activities of another queue.
func RunErrands(ctx workflow.Context, taskQueue string, errands []Errand) error {
	var turns *Turns
	var underWay []workflow.Future
	for _, errand := range errands {
		activityCtx := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			TaskQueue:           taskQueue,
			StartToCloseTimeout: time.Minute,
			Priority:            errand.Priority,
		})
		underWay = append(underWay, workflow.ExecuteActivity(activityCtx, turns.TakeTurn, errand.Name))
	}
	for _, call := range underWay {
		if err := call.Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// SendVisitors starts all errands at once, as children on another queue.
func SendVisitors(ctx workflow.Context, taskQueue string, errands []Errand) error {
	var underWay []workflow.Future
	for _, errand := range errands {
		childCtx := withChild(ctx, errand.Name, workflow.ChildWorkflowOptions{
			TaskQueue: taskQueue,
			Priority:  errand.Priority,
		})
		underWay = append(underWay, workflow.ExecuteChildWorkflow(childCtx, VisitOnce, errand.Name))
	}
	for _, child := range underWay {
		if err := child.Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}
