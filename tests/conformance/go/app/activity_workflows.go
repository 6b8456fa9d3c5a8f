package app

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

func quickRetry(attemptsMax int32, nonRetryable ...string) *temporal.RetryPolicy {
	return &temporal.RetryPolicy{
		InitialInterval:        50 * time.Millisecond,
		BackoffCoefficient:     1,
		MaximumAttempts:        attemptsMax,
		NonRetryableErrorTypes: nonRetryable,
	}
}

func withinMinute(ctx workflow.Context, retry *temporal.RetryPolicy) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute,
		RetryPolicy:         retry,
	})
}

func Hello(ctx workflow.Context, name string) (greeting string, err error) {
	err = workflow.ExecuteActivity(withinMinute(ctx, nil), Greet, name).Get(ctx, &greeting)
	return greeting, err
}

func HelloLocally(ctx workflow.Context, name string) (greeting string, err error) {
	local := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: time.Minute,
	})
	err = workflow.ExecuteLocalActivity(local, Greet, name).Get(ctx, &greeting)
	return greeting, err
}

func RetryUntil(ctx workflow.Context, wanted int32) (attempt int32, err error) {
	err = workflow.ExecuteActivity(withinMinute(ctx, quickRetry(0)), SucceedOnAttempt, wanted).Get(ctx, &attempt)
	return attempt, err
}

func Pay(ctx workflow.Context, charge Charge) error {
	return workflow.ExecuteActivity(withinMinute(ctx, quickRetry(3, "StolenCard")), Decline, charge).Get(ctx, nil)
}

func ResumeByHeartbeat(ctx workflow.Context) (done int, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute,
		HeartbeatTimeout:    time.Minute,
		RetryPolicy:         quickRetry(2),
	})
	err = workflow.ExecuteActivity(ctx, ResumeFromHeartbeat).Get(ctx, &done)
	return done, err
}

// TimeOut waits for an activity that ends only by the timeout named in the argument.
func TimeOut(ctx workflow.Context, timeout string) error {
	options := workflow.ActivityOptions{StartToCloseTimeout: time.Minute, RetryPolicy: quickRetry(1)}
	switch timeout {
	case "heartbeat":
		options.HeartbeatTimeout = time.Second
	case "start to close":
		options.StartToCloseTimeout = time.Second
	case "schedule to start":
		options.ScheduleToStartTimeout = time.Second
		options.TaskQueue = "nobody-polls-" + workflow.GetInfo(ctx).WorkflowExecution.ID
	}
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), OutliveEveryTimeout).Get(ctx, nil)
}

// CancelActivity passes its own cancellation on to the activity and waits for its answer.
func CancelActivity(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute,
		HeartbeatTimeout:    30 * time.Second,
		WaitForCancellation: true,
	})
	var watched *Watched
	return workflow.ExecuteActivity(ctx, watched.HeartbeatUntilCancelled).Get(ctx, nil)
}

func CompleteElsewhere(ctx workflow.Context) (answer string, err error) {
	var watched *Watched
	err = workflow.ExecuteActivity(withinMinute(ctx, quickRetry(1)), watched.LeaveToSomeoneElse).Get(ctx, &answer)
	return answer, err
}

// ReadPriorities returns what activities see that set no field of their priority, all of them, or one.
func ReadPriorities(ctx workflow.Context) (seats []Seat, err error) {
	for _, priority := range []temporal.Priority{
		{},
		{PriorityKey: 1, FairnessKey: "bolt", FairnessWeight: 2.5},
		{PriorityKey: 1},
		{FairnessKey: "bolt"},
		{FairnessWeight: 2.5},
	} {
		activityCtx := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Minute,
			Priority:            priority,
		})
		var seat Seat
		if err = workflow.ExecuteActivity(activityCtx, ReadPriority).Get(ctx, &seat); err != nil {
			return nil, err
		}
		seats = append(seats, seat)
	}
	return seats, nil
}

// ManyActivities runs rounds of parallel activities, to grow a long history.
func ManyActivities(ctx workflow.Context, rounds, width int) (done int, err error) {
	ctx = withinMinute(ctx, nil)
	for range rounds {
		var calls []workflow.Future
		for range width {
			calls = append(calls, workflow.ExecuteActivity(ctx, Greet, "guest"))
		}
		for _, call := range calls {
			if err := call.Get(ctx, nil); err != nil {
				return done, err
			}
			done++
		}
	}
	return done, nil
}
