package conformance

import (
	"errors"
	"sort"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"fairlead.test/conformance/app"
)

const (
	fail              = enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL
	useExisting       = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	terminateExisting = enumspb.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING
)

func (s stage) opening(policy enumspb.WorkflowIdConflictPolicy) client.WithStartWorkflowOperation {
	options := s.options()
	options.WorkflowIDConflictPolicy = policy
	return server.NewWithStartWorkflowOperation(options, app.Account, false)
}

// depositWithStart deposits into the stage's account, which is opened when there is none.
func (s stage) depositWithStart(id string, amount int, opening client.WithStartWorkflowOperation) (balance int, err error) {
	update := client.UpdateWorkflowOptions{
		UpdateID: id, UpdateName: "deposit", Args: []any{amount},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	}
	handle, err := server.UpdateWithStartWorkflow(s.ctx,
		client.UpdateWithStartWorkflowOptions{StartWorkflowOperation: opening, UpdateOptions: update})
	if err == nil {
		err = handle.Get(s.ctx, &balance)
	}
	return balance, err
}

// deposits checks the balance afterwards and returns the run that has it.
func (s stage) deposits(id string, amount int, policy enumspb.WorkflowIdConflictPolicy, balance int) client.WorkflowRun {
	s.Helper()
	opening := s.opening(policy)
	got, err := s.depositWithStart(id, amount, opening)
	s.check(err)
	equal(s, got, balance)
	run, err := opening.Get(s.ctx)
	s.check(err)
	return run
}

func (s stage) alreadyStarted(err error) *serviceerror.WorkflowExecutionAlreadyStarted {
	s.Helper()
	var taken *serviceerror.WorkflowExecutionAlreadyStarted
	if !errors.As(err, &taken) {
		s.Fatalf("not already started: %v", err)
	}
	return taken
}

func TestAnUpdateStartsTheWorkflowAndRidesOnItsFirstTask(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	run := s.deposits("", 5, fail, 5)
	equal(s, s.eventNames(run), append([]string{"WorkflowExecutionStarted"}, newTask(accepted, completed)...))
	s.closes(run, "deposit 5")
}

func TestAnUpdateUsesTheWorkflowThatRunsWhenItMay(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	first := s.deposits("", 5, useExisting, 5)
	second := s.deposits("", 7, useExisting, 12)
	equal(s, first.GetRunID(), second.GetRunID())
	s.closes(first, "deposit 5", "deposit 7")
}

func TestAnUpdateWithStartWaitsForAcceptanceAndPollsForTheResult(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	opening := s.opening(fail)
	update, err := server.UpdateWithStartWorkflow(s.ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: opening,
		UpdateOptions: client.UpdateWorkflowOptions{
			UpdateID: "Ada", UpdateName: "transfer", Args: []any{"Ada"},
			WaitForStage: client.WorkflowUpdateStageAccepted,
		},
	})
	s.check(err)
	run, err := opening.Get(s.ctx)
	s.check(err)
	equal(s, update.RunID(), run.GetRunID())
	s.signal(run, "approve", "Ada")
	s.transferred(update)
	s.closes(run, "transfer to Ada", "transferred to Ada")
}

func TestAWorkflowThatRunsAlreadyIsAConflictAndHearsNothing(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	run := s.start(app.Account, false)
	answers(s, 5, "deposit", 5)
	before := s.eventNames(run)
	_, err := s.depositWithStart("", 7, s.opening(fail))
	equal(s, s.alreadyStarted(err).RunId, run.GetRunID())
	equal(s, s.eventNames(run), before)
	s.closes(run, "deposit 5")
}

func TestAnUpdateMayReplaceTheWorkflowThatRuns(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	first := s.start(app.Account, false)
	answers(s, 5, "deposit", 5)
	second := s.deposits("", 7, terminateExisting, 7)
	equal(s, s.status(first), enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED)
	s.closes(second, "deposit 7")
}

func TestAnUpdateIdSentTwiceCountsOnceAndIsNoConflict(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	first := s.deposits("once", 5, fail, 5)
	second := s.deposits("once", 5, fail, 5)
	equal(s, first.GetRunID(), second.GetRunID())
	s.closes(first, "deposit 5")
}

func TestAnAnsweredUpdateDoesNotStartAClosedWorkflowAgain(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	first := s.deposits("once", 5, fail, 5)
	s.closes(first, "deposit 5")
	again := s.deposits("once", 5, fail, 5)
	equal(s, again.GetRunID(), first.GetRunID())
	// Another update is new work and gets a new run.
	other := s.deposits("twice", 7, fail, 7)
	equal(s, other.GetRunID() == first.GetRunID(), false)
	s.closes(other, "deposit 7")
}

func TestTheReusePolicyCountsForTheUpdateOfAClosedWorkflow(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	s.closes(s.start(app.Account, false))
	options := s.options()
	options.WorkflowIDConflictPolicy = fail
	options.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
	_, err := s.depositWithStart("", 5, server.NewWithStartWorkflowOperation(options, app.Account, false))
	s.alreadyStarted(err)
}

func TestARefusedUpdateLeavesTheWorkflowThatItStarted(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	opening := s.opening(fail)
	_, err := s.depositWithStart("", -5, opening)
	s.refused(err, "-5 is not an amount")
	run, err := opening.Get(s.ctx)
	s.check(err)
	answers(s, 5, "deposit", 5)
	s.closes(run, "deposit 5")
}

func TestACallThatGivesUpLeavesTheWorkflowThatItStarted(t *testing.T) {
	s := newStage(t)
	_, err := s.inAHurry().depositWithStart("five", 5, s.opening(fail))
	s.timedOut(err)
	equal(s, s.status(server.GetWorkflow(s.ctx, s.name, "")), enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING)
	defer s.work(registerAccounts)()
	s.closes(s.deposits("five", 5, useExisting, 5), "deposit 5")
}

func TestAnUpdateStartsANewRunWhenTheOneItWaitsForIsClosed(t *testing.T) {
	s := newStage(t)
	first := s.start(app.Account, false)
	opening, waiting := s.opening(useExisting), make(chan answer[int], 1)
	go func() {
		balance, err := s.depositWithStart("five", 5, opening)
		waiting <- answer[int]{balance, err}
	}()
	s.untilAdmitted("five")
	s.check(server.TerminateWorkflow(s.ctx, s.name, "", "the test wants it"))
	defer s.work(registerAccounts)()
	equal(s, receive(s, waiting), answer[int]{5, nil})
	run, err := opening.Get(s.ctx)
	s.check(err)
	equal(s, run.GetRunID() == first.GetRunID(), false)
	s.closes(run, "deposit 5")
}

func TestCallersAtOnceShareOneWorkflow(t *testing.T) {
	s := newStage(t)
	defer s.work(registerAccounts)()
	waiting := make(chan answer[int], 5)
	for range 5 {
		go func() {
			balance, err := s.depositWithStart("", 1, s.opening(useExisting))
			waiting <- answer[int]{balance, err}
		}()
	}
	var balances []int
	for range 5 {
		answer := receive(s, waiting)
		s.check(answer.err)
		balances = append(balances, answer.result)
	}
	sort.Ints(balances)
	equal(s, balances, []int{1, 2, 3, 4, 5})
	s.check(server.TerminateWorkflow(s.ctx, s.name, "", "the test is over"))
}
