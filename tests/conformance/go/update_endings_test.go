package conformance

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"fairlead.test/conformance/app"
)

func (s stage) updateHandle(id string) client.WorkflowUpdateHandle {
	return server.GetWorkflowUpdateHandle(client.GetWorkflowUpdateHandleOptions{WorkflowID: s.name, UpdateID: id})
}

func (s stage) leftUnfinished(err error) {
	s.Helper()
	failure := s.refused(err, "Workflow Update failed because the Workflow completed before the Update completed.")
	equal(s, failure.Type(), "AcceptedUpdateCompletedWorkflow")
}

func (s stage) timedOut(err error) {
	s.Helper()
	var timeout *client.WorkflowUpdateServiceTimeoutOrCanceledError
	if !errors.As(err, &timeout) {
		s.Fatalf("the call did not give up: %v", err)
	}
}

// inAHurry is a stage whose calls soon give up.
func (s stage) inAHurry() stage {
	ctx, cancel := context.WithTimeout(s.ctx, time.Second)
	s.Cleanup(cancel)
	s.ctx = ctx
	return s
}

func TestAnUpdateMayCloseTheWorkflowInItsOwnTask(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	run := s.start(app.Account, false)
	answers(s, 5, "deposit", 5)
	answers(s, "closed with 5", "close at once")
	gives(s, run, []string{"deposit 5"})
	names := s.eventNames(run)
	equal(s, names[len(names)-4:],
		[]string{"WorkflowTaskCompleted", accepted, completed, "WorkflowExecutionCompleted"})
	s.replaysAccount(run)
}

func TestAClosedWorkflowStillTellsTheOutcomeOfItsUpdates(t *testing.T) {
	s := newStage(t)
	stop := s.work(registerAccounts)
	run := s.start(app.Account, false)
	_, err := ask[int](s, "five", "deposit", 5)
	s.check(err)
	_, err = ask[int](s, "six", "withdraw", 6)
	s.refused(err, "only 5 left")
	s.closes(run, "deposit 5")
	stop()
	balance, err := ask[int](s, "five", "deposit", 5)
	s.check(err)
	equal(s, balance, 5)
	s.check(s.updateHandle("five").Get(s.ctx, &balance))
	equal(s, balance, 5)
	s.refused(s.updateHandle("six").Get(s.ctx, nil), "only 5 left")
}

func TestUpdatesOfClosedAndUnknownWorkflowsAreRefusedAsNotFound(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	_, err := ask[int](s, "", "deposit", 5)
	s.notFound(err, "")
	s.closes(s.start(app.Account, false))
	_, err = ask[int](s, "", "deposit", 5)
	s.notFound(err, "workflow execution already completed")
	s.notFound(s.updateHandle("nobody").Get(s.ctx, nil), "nobody")
}

func TestAnAcceptedUpdateFailsWhenTheWorkflowCompletesBeforeIt(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	run := s.start(app.Account, false)
	update := s.startTransfer("Ada")
	result := make(chan error, 1)
	go func() { result <- update.Get(s.ctx, nil) }()
	s.closes(run, "transfer to Ada")
	s.leftUnfinished(receive(s, result))
	equal(s, count(s.eventNames(run), completed), 0)
	// Who asks later hears the same, by either way of asking.
	s.leftUnfinished(s.updateHandle("Ada").Get(s.ctx, nil))
	_, err := ask[string](s, "Ada", "transfer", "Ada")
	s.leftUnfinished(err)
}

func TestAnAcceptedUpdateFailsWhenTheWorkflowIsTerminated(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	s.start(app.Account, false)
	update := s.startTransfer("Ada")
	s.check(server.TerminateWorkflow(s.ctx, s.name, "", "the test wants it"))
	s.leftUnfinished(update.Get(s.ctx, nil))
}

func TestAnUpdateThatNobodyHeardIsRefusedWhenTheWorkflowIsTerminated(t *testing.T) {
	s := newStage(t)
	s.start(app.Account, false)
	deposit := askInBackground[int](s, "five", "deposit", 5)
	s.untilAdmitted("five")
	s.check(server.TerminateWorkflow(s.ctx, s.name, "", "the test wants it"))
	s.notFound(receive(s, deposit).err, "aborted by closing workflow")
	s.notFound(s.updateHandle("five").Get(s.ctx, nil), "")
}

func TestAPatientWorkflowLetsItsUpdatesFinish(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	run := s.start(app.Account, true)
	update := s.startTransfer("Ada")
	s.signal(run, "close", nil)
	var entries []string
	s.query(run, &entries, "entries")
	equal(s, entries, []string{"transfer to Ada"})
	s.signal(run, "approve", "Ada")
	gives(s, run, []string{"transfer to Ada", "transferred to Ada"})
	s.transferred(update)
	names := s.eventNames(run)
	equal(s, names[len(names)-2:], []string{completed, "WorkflowExecutionCompleted"})
	s.replaysAccount(run)
}

func TestACallMayGiveUpBeforeAWorkerComesAndAskAgain(t *testing.T) {
	s := newStage(t)
	run := s.start(app.Account, false)
	_, err := ask[int](s.inAHurry(), "five", "deposit", 5)
	s.timedOut(err)
	defer s.work(registerAccounts)()
	balance, err := ask[int](s, "five", "deposit", 5)
	s.check(err)
	equal(s, balance, 5)
	s.closes(run, "deposit 5")
}

func TestAnUpdateWaitsForAWorkerThatComesLater(t *testing.T) {
	s := newStage(t)
	stop := s.work(registerAccounts)
	run := s.start(app.Account, false)
	answers(s, 5, "deposit", 5)
	stop()
	deposit := askInBackground[int](s, "seven", "deposit", 7)
	s.untilAdmitted("seven")
	defer s.work(registerAccounts)()
	equal(s, receive(s, deposit), answer[int]{12, nil})
	s.closes(run, "deposit 5", "deposit 7")
}

func TestAHandlerGoesOnUnderANewWorker(t *testing.T) {
	s := newStage(t)
	stop := s.work(registerAccounts)
	run := s.start(app.Account, false)
	answers(s, 5, "deposit", 5)
	_, err := ask[int](s, "", "deposit", -1)
	s.refused(err, "not an amount")
	update := s.startTransfer("Ada")
	stop()
	// Go's workers share one cache of runs; this one starts without it.
	worker.PurgeStickyWorkflowCache()
	defer s.work(registerAccounts)()
	s.signal(run, "approve", "Ada")
	s.transferred(update)
	_, err = ask[int](s, "", "deposit", -1)
	s.refused(err, "not an amount")
	answers(s, 12, "deposit", 7)
	s.closes(run, "deposit 5", "transfer to Ada", "transferred to Ada", "deposit 7")
}

func TestAnUpdateWaitsOutABrokenDeployment(t *testing.T) {
	s := newStage(t)
	till := workflow.RegisterOptions{Name: "Till"}
	stop := s.work(func(w worker.Worker) { w.RegisterWorkflowWithOptions(app.BrokenTill, till) })
	options := s.options()
	options.WorkflowTaskTimeout = time.Second
	run := s.startWith(options, "Till")
	s.untilEvent(run, "WorkflowTaskCompleted")
	open := askInBackground[string](s, "", "open")
	s.untilEvent(run, "WorkflowTaskFailed")
	stop()
	defer s.work(func(w worker.Worker) { w.RegisterWorkflowWithOptions(app.FixedTill, till) })()
	equal(s, receive(s, open), answer[string]{"open", nil})
	replayer := worker.NewWorkflowReplayer()
	replayer.RegisterWorkflowWithOptions(app.FixedTill, till)
	s.check(replayer.ReplayWorkflowHistory(quiet, s.history(run)))
	s.check(server.TerminateWorkflow(s.ctx, s.name, "", "the test is over"))
}

func TestAnUpdateDuringTheLastTaskIsRefusedWhenTheWorkflowLeaves(t *testing.T) {
	s := newStage(t)
	looks, mayLeave := make(chan struct{}, 1), make(chan struct{})
	defer s.work(func(w worker.Worker) {
		w.RegisterWorkflow(app.LastOrders)
		lookAround := func(context.Context) error {
			looks <- struct{}{}
			<-mayLeave
			return nil
		}
		w.RegisterActivityWithOptions(lookAround, activity.RegisterOptions{Name: "LookAround"})
	})()
	run := s.start(app.LastOrders)
	receive(s, looks)
	order := askInBackground[string](s, "tea", "order", "tea")
	s.untilAdmitted("tea")
	close(mayLeave)
	s.notFound(receive(s, order).err, "aborted by closing workflow")
	gives(s, run, []string(nil))
}

func (s stage) moves(run client.WorkflowRun) {
	s.Helper()
	s.signal(run, "move", nil)
	s.untilEvent(run, "WorkflowExecutionContinuedAsNew")
}

func TestUpdatesFindTheNewestRunOfAChain(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	run := s.start(app.TravellingAccount, 0)
	deposit := func(options client.UpdateWorkflowOptions, id string) (balance int, err error) {
		options.WorkflowID, options.UpdateID = s.name, id
		options.UpdateName, options.Args = "deposit", []any{5}
		options.WaitForStage = client.WorkflowUpdateStageCompleted
		handle, err := server.UpdateWorkflow(s.ctx, options)
		if err == nil {
			err = handle.Get(s.ctx, &balance)
		}
		return balance, err
	}
	old := client.UpdateWorkflowOptions{RunID: run.GetRunID()}
	chain := client.UpdateWorkflowOptions{FirstExecutionRunID: run.GetRunID()}
	balance, err := deposit(old, "same")
	s.check(err)
	equal(s, balance, 5)
	s.moves(run)
	// Ids count by run: the second run has not heard of this one.
	balance, err = deposit(chain, "same")
	s.check(err)
	equal(s, balance, 10)
	balance, err = deposit(old, "same")
	s.check(err)
	equal(s, balance, 5)
	_, err = deposit(old, "other")
	s.notFound(err, "")
	s.check(server.TerminateWorkflow(s.ctx, s.name, "", "the test is over"))
	s.startWith(s.options(), app.Account, false)
	_, err = deposit(chain, "other")
	s.notFound(err, "")
	s.check(server.TerminateWorkflow(s.ctx, s.name, "", "the test is over"))
}

func TestAnAcceptedUpdateDoesNotFollowTheWorkflowToANewRun(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	run := s.start(app.TravellingAccount, 0)
	update, err := server.UpdateWorkflow(s.ctx, client.UpdateWorkflowOptions{
		WorkflowID: s.name, UpdateName: "transfer", WaitForStage: client.WorkflowUpdateStageAccepted,
	})
	s.check(err)
	s.moves(run)
	s.leftUnfinished(update.Get(s.ctx, nil))
	s.replaysAccount(run)
	s.check(server.TerminateWorkflow(s.ctx, s.name, "", "the test is over"))
}

func TestAnUpdateThatNobodyHeardFollowsTheWorkflowToItsNextAttempt(t *testing.T) {
	s := newStage(t)
	options := s.options()
	options.WorkflowRunTimeout = 3 * time.Second
	options.RetryPolicy = &temporal.RetryPolicy{InitialInterval: 10 * time.Millisecond}
	first := s.startWith(options, app.TravellingAccount, 0)
	deposit := askInBackground[int](s, "", "deposit", 5)
	s.untilEvent(first, "WorkflowExecutionTimedOut")
	defer s.work(registerAccounts)()
	equal(s, receive(s, deposit), answer[int]{5, nil})
	equal(s, contains(s.eventNames(first), accepted), false)
	s.check(server.TerminateWorkflow(s.ctx, s.name, "", "the test is over"))
}
