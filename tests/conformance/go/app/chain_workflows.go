package app

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Relay is how many runners are still to come, and who ran before them with which priority.
type Relay struct {
	Left   int
	RunIDs []string
	Seats  []Seat
}

func ownSeat(ctx workflow.Context) Seat {
	priority := workflow.GetInfo(ctx).Priority
	return Seat{priority.PriorityKey, priority.FairnessKey, priority.FairnessWeight}
}

// RunRelay hands over to a new run until nobody is left; the last one tells of all.
func RunRelay(ctx workflow.Context, relay Relay) (Relay, error) {
	relay.Left--
	relay.RunIDs = append(relay.RunIDs, workflow.GetInfo(ctx).WorkflowExecution.RunID)
	relay.Seats = append(relay.Seats, ownSeat(ctx))
	if relay.Left > 0 {
		return relay, workflow.NewContinueAsNewError(ctx, RunRelay, relay)
	}
	return relay, nil
}

// SucceedOnRun fails until the wanted attempt and returns the attempt's number.
func SucceedOnRun(ctx workflow.Context, wanted int32) (int32, error) {
	attempt := workflow.GetInfo(ctx).Attempt
	if attempt < wanted {
		return 0, temporal.NewApplicationError(fmt.Sprintf("run %d is too early", attempt), "TooEarly")
	}
	return attempt, nil
}

// KeepDiary adds a page to what the last successful run left behind; the second run fails instead.
func KeepDiary(ctx workflow.Context) (pages []string, err error) {
	if workflow.HasLastCompletionResult(ctx) {
		if err = workflow.GetLastCompletionResult(ctx, &pages); err != nil {
			return nil, err
		}
	}
	var failure *temporal.ApplicationError
	if errors.As(workflow.GetLastError(ctx), &failure) {
		return append(pages, "a late page, since "+failure.Message()), nil
	}
	if len(pages) == 1 {
		return nil, temporal.NewApplicationError("the pencil broke", "BrokenPencil")
	}
	return append(pages, "a page"), nil
}
