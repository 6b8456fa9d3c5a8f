package app

import (
	"errors"
	"fmt"
	"math/rand"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Inbox collects letters until it is told to close; it tells how many it has when asked.
func Inbox(ctx workflow.Context) ([]string, error) {
	letters := []string{}
	if err := workflow.SetQueryHandler(ctx, "count", func() (int, error) { return len(letters), nil }); err != nil {
		return nil, err
	}
	err := workflow.SetQueryHandler(ctx, "letter", func(index int) (string, error) {
		if index >= len(letters) {
			return "", fmt.Errorf("there is no letter %d", index)
		}
		return letters[index], nil
	})
	if err != nil {
		return nil, err
	}

	isClosed := false
	selector := workflow.NewSelector(ctx)
	selector.AddReceive(workflow.GetSignalChannel(ctx, "deliver"), func(channel workflow.ReceiveChannel, _ bool) {
		var letter string
		channel.Receive(ctx, &letter)
		letters = append(letters, letter)
	})
	selector.AddReceive(workflow.GetSignalChannel(ctx, "close"), func(channel workflow.ReceiveChannel, _ bool) {
		channel.Receive(ctx, nil)
		isClosed = true
	})
	for !isClosed || selector.HasPending() {
		selector.Select(ctx)
	}
	return letters, nil
}

func Sleep(ctx workflow.Context, duration time.Duration) (string, error) {
	if err := workflow.Sleep(ctx, duration); err != nil {
		return "", err
	}
	return "awake", nil
}

// SleepUntilWoken races a day-long timer against a signal and cancels the timer when the signal wins.
func SleepUntilWoken(ctx workflow.Context) (outcome string, err error) {
	timerCtx, cancelTimer := workflow.WithCancel(ctx)
	selector := workflow.NewSelector(ctx)
	selector.AddFuture(workflow.NewTimer(timerCtx, 24*time.Hour), func(workflow.Future) { outcome = "slept in" })
	selector.AddReceive(workflow.GetSignalChannel(ctx, "wake"), func(channel workflow.ReceiveChannel, _ bool) {
		channel.Receive(ctx, nil)
		cancelTimer()
		outcome = "woken"
	})
	selector.Select(ctx)
	return outcome, nil
}

func Refuse(_ workflow.Context, order string) error {
	return temporal.NewNonRetryableApplicationError(
		fmt.Sprintf("order %s is out of stock", order), "OutOfStock", nil, order, 0)
}

func CleanUpWhenCancelled(ctx workflow.Context) (string, error) {
	err := workflow.Sleep(ctx, 24*time.Hour)
	var cancelled *temporal.CanceledError
	if errors.As(err, &cancelled) {
		return "cleaned up", nil
	}
	return "slept in", err
}

// BrokenGreeting is a version deployed by mistake: the panic fails the task, not the workflow.
func BrokenGreeting(workflow.Context, string) (string, error) {
	panic("nobody tested this version")
}

func FixedGreeting(_ workflow.Context, name string) (string, error) {
	return fmt.Sprintf("Hello, %s!", name), nil
}

// JourneyBefore draws a ticket by a side effect, waits and travels; JourneyAfter has to replay it.
func JourneyBefore(ctx workflow.Context) (string, error) {
	ticket, err := drawTicket(ctx)
	if err != nil {
		return "", err
	}
	workflow.GetSignalChannel(ctx, "go on").Receive(ctx, nil)
	err = workflow.Sleep(ctx, 10*time.Millisecond)
	return fmt.Sprintf("old road %d", ticket), err
}

func JourneyAfter(ctx workflow.Context) (string, error) {
	ticket, err := drawTicket(ctx)
	if err != nil {
		return "", err
	}
	version := workflow.GetVersion(ctx, "new road", workflow.DefaultVersion, 1)
	workflow.GetSignalChannel(ctx, "go on").Receive(ctx, nil)
	if version == workflow.DefaultVersion {
		err = workflow.Sleep(ctx, 10*time.Millisecond)
		return fmt.Sprintf("old road %d", ticket), err
	}
	var greeting string
	err = workflow.ExecuteActivity(withinMinute(ctx, nil), Greet, "traveller").Get(ctx, &greeting)
	return "new road " + greeting, err
}

func drawTicket(ctx workflow.Context) (ticket int64, err error) {
	encoded := workflow.SideEffect(ctx, func(workflow.Context) any { return rand.Int63() })
	if err = encoded.Get(&ticket); err != nil {
		return 0, err
	}
	err = workflow.SetQueryHandler(ctx, "ticket", func() (int64, error) { return ticket, nil })
	return ticket, err
}
