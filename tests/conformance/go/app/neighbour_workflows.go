package app

import "go.temporal.io/sdk/workflow"

func WriteToChild(ctx workflow.Context, letters []string) (delivered []string, err error) {
	ctx = withChild(ctx, "inbox", workflow.ChildWorkflowOptions{})
	child := workflow.ExecuteChildWorkflow(ctx, Inbox)
	for _, letter := range letters {
		if err = child.SignalChildWorkflow(ctx, "deliver", letter).Get(ctx, nil); err != nil {
			return nil, err
		}
	}
	if err = child.SignalChildWorkflow(ctx, "close", nil).Get(ctx, nil); err != nil {
		return nil, err
	}
	err = child.Get(ctx, &delivered)
	return delivered, err
}

func WriteToNeighbour(ctx workflow.Context, neighbour string, letters []string) error {
	for _, letter := range letters {
		err := workflow.SignalExternalWorkflow(ctx, neighbour, "", "deliver", letter).Get(ctx, nil)
		if err != nil {
			return err
		}
	}
	return nil
}

func CancelNeighbour(ctx workflow.Context, neighbour string) error {
	return workflow.RequestCancelExternalWorkflow(ctx, neighbour, "").Get(ctx, nil)
}
