package app

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// account keeps a balance, and a journal of what it was asked to do.
type account struct {
	balance  int
	journal  []string
	approved map[string]bool
	isClosed bool
}

// Account lives until it is closed. A patient account first lets the updates finish that it has begun.
func Account(ctx workflow.Context, isPatient bool) ([]string, error) {
	a := &account{journal: []string{}, approved: map[string]bool{}}
	if err := a.listen(ctx); err != nil {
		return nil, err
	}
	err := workflow.Await(ctx, func() bool {
		return a.isClosed && (!isPatient || workflow.AllHandlersFinished(ctx))
	})
	return a.journal, err
}

func (a *account) listen(ctx workflow.Context) error {
	workflow.Go(ctx, func(ctx workflow.Context) {
		selector := workflow.NewSelector(ctx)
		selector.AddReceive(workflow.GetSignalChannel(ctx, "approve"), func(channel workflow.ReceiveChannel, _ bool) {
			var to string
			channel.Receive(ctx, &to)
			a.approved[to] = true
		})
		selector.AddReceive(workflow.GetSignalChannel(ctx, "close"), func(channel workflow.ReceiveChannel, _ bool) {
			channel.Receive(ctx, nil)
			a.isClosed = true
		})
		for {
			selector.Select(ctx)
		}
	})
	for name, handler := range map[string]any{
		"withdraw":      a.withdraw,
		"transfer":      a.transfer,
		"thank":         a.thank,
		"who asks":      a.whoAsks,
		"close at once": a.closeAtOnce,
	} {
		if err := workflow.SetUpdateHandler(ctx, name, handler); err != nil {
			return err
		}
	}
	checked := workflow.UpdateHandlerOptions{Validator: checkAmount}
	if err := workflow.SetUpdateHandlerWithOptions(ctx, "deposit", a.deposit, checked); err != nil {
		return err
	}
	return workflow.SetQueryHandler(ctx, "entries", func() ([]string, error) { return a.journal, nil })
}

func checkAmount(amount int) error {
	if amount <= 0 {
		return fmt.Errorf("%d is not an amount", amount)
	}
	return nil
}

func (a *account) deposit(_ workflow.Context, amount int) (int, error) {
	a.balance += amount
	a.journal = append(a.journal, fmt.Sprintf("deposit %d", amount))
	return a.balance, nil
}

func (a *account) withdraw(_ workflow.Context, amount int) (int, error) {
	if amount > a.balance {
		message := fmt.Sprintf("only %d left", a.balance)
		return 0, temporal.NewNonRetryableApplicationError(message, "Overdrawn", nil, a.balance)
	}
	a.balance -= amount
	return a.balance, nil
}

// transfer waits for somebody to approve it, who may take years.
func (a *account) transfer(ctx workflow.Context, to string) (string, error) {
	a.journal = append(a.journal, "transfer to "+to)
	if err := workflow.Await(ctx, func() bool { return a.approved[to] }); err != nil {
		return "", err
	}
	a.journal = append(a.journal, "transferred to "+to)
	return to + " has the money", nil
}

// thank does so by an activity, by a local one, and sleeps over it.
func (a *account) thank(ctx workflow.Context, name string) ([]string, error) {
	thanks, err := Hello(ctx, name)
	if err != nil {
		return nil, err
	}
	locally, err := HelloLocally(ctx, "dear "+name)
	if err != nil {
		return nil, err
	}
	return []string{thanks, locally, "good night"}, workflow.Sleep(ctx, 10*time.Millisecond)
}

func (a *account) whoAsks(ctx workflow.Context) ([]string, error) {
	err := workflow.Sleep(ctx, 10*time.Millisecond)
	info := workflow.GetCurrentUpdateInfo(ctx)
	return []string{info.Name, info.ID}, err
}

func (a *account) closeAtOnce(workflow.Context) (string, error) {
	a.isClosed = true
	return fmt.Sprintf("closed with %d", a.balance), nil
}

// TravellingAccount moves its balance to a new run whenever it is told to.
func TravellingAccount(ctx workflow.Context, balance int) error {
	err := workflow.SetUpdateHandler(ctx, "deposit", func(_ workflow.Context, amount int) (int, error) {
		balance += amount
		return balance, nil
	})
	if err != nil {
		return err
	}
	err = workflow.SetUpdateHandler(ctx, "transfer", func(ctx workflow.Context) error {
		return workflow.Await(ctx, func() bool { return false })
	})
	if err != nil {
		return err
	}
	workflow.GetSignalChannel(ctx, "move").Receive(ctx, nil)
	return workflow.NewContinueAsNewError(ctx, TravellingAccount, balance)
}

// LastOrders takes a last look around, which is a local activity, and leaves.
func LastOrders(ctx workflow.Context) (orders []string, err error) {
	err = workflow.SetUpdateHandler(ctx, "order", func(_ workflow.Context, drink string) (string, error) {
		orders = append(orders, drink)
		return drink + " for you", nil
	})
	if err != nil {
		return nil, err
	}
	local := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: time.Minute})
	err = workflow.ExecuteLocalActivity(local, "LookAround").Get(ctx, nil)
	return orders, err
}

// BrokenTill is a version deployed by mistake: the panic fails the task, not the update.
func BrokenTill(ctx workflow.Context) error {
	return keepTill(ctx, func(workflow.Context) (string, error) { panic("nobody tested this version") })
}

func FixedTill(ctx workflow.Context) error {
	return keepTill(ctx, func(workflow.Context) (string, error) { return "open", nil })
}

func keepTill(ctx workflow.Context, open func(workflow.Context) (string, error)) error {
	if err := workflow.SetUpdateHandler(ctx, "open", open); err != nil {
		return err
	}
	return workflow.Await(ctx, func() bool { return false })
}
