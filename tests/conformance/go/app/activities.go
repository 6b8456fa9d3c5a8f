// Package app is a small Temporal application: the workflows and activities that the tests run.
package app

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
)

func Greet(_ context.Context, name string) (string, error) {
	return fmt.Sprintf("Hello, %s!", name), nil
}

// SucceedOnAttempt fails until the wanted attempt and returns the attempt's number.
func SucceedOnAttempt(ctx context.Context, wanted int32) (int32, error) {
	attempt := activity.GetInfo(ctx).Attempt
	if attempt < wanted {
		return 0, temporal.NewApplicationError(fmt.Sprintf("attempt %d is too early", attempt), "TooEarly")
	}
	return attempt, nil
}

type Charge struct {
	Amount       int
	ErrorType    string
	NonRetryable bool
}

func Decline(ctx context.Context, charge Charge) error {
	message := fmt.Sprintf("card declined on attempt %d", activity.GetInfo(ctx).Attempt)
	return temporal.NewApplicationErrorWithOptions(message, charge.ErrorType, temporal.ApplicationErrorOptions{
		NonRetryable: charge.NonRetryable,
		Details:      []any{charge.Amount},
	})
}

// ResumeFromHeartbeat heartbeats its progress, fails once, and returns what the second attempt was told.
func ResumeFromHeartbeat(ctx context.Context) (int, error) {
	if !activity.HasHeartbeatDetails(ctx) {
		for done := 1; done <= 3; done++ {
			activity.RecordHeartbeat(ctx, done)
		}
		return 0, temporal.NewApplicationError("crashed at row 3", "Crash")
	}
	var done int
	err := activity.GetHeartbeatDetails(ctx, &done)
	return done, err
}

// OutliveEveryTimeout never heartbeats; it ends when the worker gives up on it.
func OutliveEveryTimeout(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// Seat is the priority an activity runs with, as its own info tells it.
type Seat struct {
	Level  int
	Tenant string
	Weight float32
}

func ReadPriority(ctx context.Context) (Seat, error) {
	priority := activity.GetInfo(ctx).Priority
	return Seat{priority.PriorityKey, priority.FairnessKey, priority.FairnessWeight}, nil
}

// Watched holds activities that tell the test, which runs in the worker's process, how far they are.
type Watched struct {
	Started   chan activity.Info
	Cancelled chan struct{}
}

func NewWatched() *Watched {
	return &Watched{Started: make(chan activity.Info, 1), Cancelled: make(chan struct{}, 1)}
}

func (w *Watched) HeartbeatUntilCancelled(ctx context.Context) error {
	w.Started <- activity.GetInfo(ctx)
	for {
		activity.RecordHeartbeat(ctx, "still here")
		select {
		case <-ctx.Done():
			w.Cancelled <- struct{}{}
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (w *Watched) LeaveToSomeoneElse(ctx context.Context) (string, error) {
	w.Started <- activity.GetInfo(ctx)
	return "", activity.ErrResultPending
}
