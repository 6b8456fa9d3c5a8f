package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"fairlead.test/conformance/app"
)

// workOneByOne starts a worker with one slot: it asks for its next task when it is done with the last one, so the
// order of its turns is the order in which tasks were handed out. (Half of its polls for workflow tasks ask its own
// sticky queue. Those have to be answered with tasks of the normal queue, too, or the only slot would be stuck there.)
func workOneByOne(s stage, taskQueue string, register func(worker.Worker)) (stop func()) {
	s.Helper()
	oneSlot, err := worker.NewFixedSizeTuner(worker.FixedSizeTunerOptions{NumWorkflowSlots: 1, NumActivitySlots: 1})
	s.check(err)
	return s.workOn(taskQueue, worker.Options{Tuner: oneSlot, MaxConcurrentActivityTaskPollers: 1}, register)
}

func errands(name string, count int, priority temporal.Priority) (list []app.Errand) {
	for n := range count {
		list = append(list, app.Errand{Name: fmt.Sprintf("%s %d", name, n+1), Priority: priority})
	}
	return list
}

// The busiest tenant's work comes first in one burst: in order of arrival the others would starve.
var tiers = slices.Concat(
	errands("premium", 15, temporal.Priority{FairnessKey: "premium-tier", FairnessWeight: 5}),
	errands("basic", 9, temporal.Priority{FairnessKey: "basic-tier", FairnessWeight: 3}),
	errands("free", 6, temporal.Priority{FairnessKey: "free-tier", FairnessWeight: 2}),
)

func tenants(taken []string) (names []string) {
	for _, turn := range taken {
		name, _, _ := strings.Cut(turn, " ")
		names = append(names, name)
	}
	return names
}

// checkShares wants exactly these shares in any run of consecutive turns that is as long as their sum.
func checkShares(s stage, taken []string, shares map[string]int) {
	s.Helper()
	length := 0
	for _, share := range shares {
		length += share
	}
	for first := range len(taken) - length + 1 {
		window := tenants(taken[first : first+length])
		for name, share := range shares {
			if count(window, name) != share {
				s.Fatalf("from turn %d on, %s has %d of %d turns, not %d: %q",
					first+1, name, count(window, name), length, share, taken)
			}
		}
	}
}

// checkFirstComeFirstServed wants each tenant's turns in the order in which they were asked for.
func checkFirstComeFirstServed(s stage, taken []string) {
	s.Helper()
	turns := map[string]int{}
	for index, name := range tenants(taken) {
		turns[name]++
		equal(s, taken[index], fmt.Sprintf("%s %d", name, turns[name]))
	}
}

// finish waits for the end of all workflows and lists the turns in the order in which they were taken.
func finish(s stage, runs []client.WorkflowRun, turns *app.Turns) (taken []string) {
	s.Helper()
	for _, run := range runs {
		s.check(run.Get(s.ctx, nil))
	}
	for len(turns.Taken) > 0 {
		taken = append(taken, <-turns.Taken)
	}
	return taken
}

// workflowTurns starts workflows while nobody works, then lets one worker take them one by one.
func workflowTurns(s stage, guests []app.Errand) []string {
	s.Helper()
	var runs []client.WorkflowRun
	for _, guest := range guests {
		options := client.StartWorkflowOptions{
			ID:        s.name + " " + guest.Name,
			TaskQueue: s.name,
			Priority:  guest.Priority,
		}
		runs = append(runs, s.startWith(options, app.VisitOnce, guest.Name))
	}
	turns := app.NewTurns()
	defer workOneByOne(s, s.name, func(w worker.Worker) {
		w.RegisterWorkflow(app.VisitOnce)
		w.RegisterActivity(turns)
	})()
	return finish(s, runs, turns)
}

// list is what one workflow schedules, and with which priority the workflow itself runs.
type list struct {
	priority temporal.Priority
	errands  []app.Errand
}

// activityTurns lets workflows schedule activities that nobody runs yet, then one worker takes them one by one.
func activityTurns(s stage, lists ...list) []string {
	s.Helper()
	defer s.work(func(w worker.Worker) { w.RegisterWorkflow(app.RunErrands) })()
	queue := s.name + "-errands"
	var runs []client.WorkflowRun
	for number, list := range lists {
		options := client.StartWorkflowOptions{
			ID:        fmt.Sprint(s.name, "-", number),
			TaskQueue: s.name,
			Priority:  list.priority,
		}
		runs = append(runs, s.startWith(options, app.RunErrands, queue, list.errands))
	}
	for _, run := range runs {
		s.untilEvent(run, "ActivityTaskScheduled")
	}
	turns := app.NewTurns()
	defer workOneByOne(s, queue, func(w worker.Worker) { w.RegisterActivity(turns) })()
	return finish(s, runs, turns)
}

// childTurns lets workflows start children that nobody works for yet, then one worker takes them one by one. Each child
// is started by itself, so siblings of one tenant may wait in any order.
func childTurns(s stage, lists ...list) []string {
	s.Helper()
	defer s.work(func(w worker.Worker) { w.RegisterWorkflow(app.SendVisitors) })()
	queue := s.name + "-visitors"
	var runs []client.WorkflowRun
	for number, list := range lists {
		options := client.StartWorkflowOptions{
			ID:        fmt.Sprint(s.name, "-", number),
			TaskQueue: s.name,
			Priority:  list.priority,
		}
		runs = append(runs, s.startWith(options, app.SendVisitors, queue, list.errands))
	}
	for number, run := range runs {
		s.until("all children wait", func() bool {
			return count(s.eventNames(run), "ChildWorkflowExecutionStarted") == len(lists[number].errands)
		})
	}
	turns := app.NewTurns()
	defer workOneByOne(s, queue, func(w worker.Worker) {
		w.RegisterWorkflow(app.VisitOnce)
		w.RegisterActivity(turns)
	})()
	return finish(s, runs, turns)
}

func TestUrgentWorkflowsGoFirstAndThreeIsTheDefault(t *testing.T) {
	s := newStage(t)
	taken := workflowTurns(s, slices.Concat(
		errands("batch", 2, temporal.Priority{PriorityKey: 5}),
		errands("ordinary", 2, temporal.Priority{}),
		errands("three", 2, temporal.Priority{PriorityKey: 3}),
		errands("urgent", 2, temporal.Priority{PriorityKey: 1}),
	))
	equal(s, taken, []string{
		"urgent 1", "urgent 2", "ordinary 1", "ordinary 2", "three 1", "three 2", "batch 1", "batch 2",
	})
}

func TestWorkflowsOfThreeTiersShareEveryTenTurnsByWeight(t *testing.T) {
	s := newStage(t)
	taken := workflowTurns(s, tiers)
	equal(s, len(taken), len(tiers))
	checkShares(s, taken, map[string]int{"premium": 5, "basic": 3, "free": 2})
	checkFirstComeFirstServed(s, taken)
}

func TestWorkflowsWithoutAKeyAreOneTenantAmongOthers(t *testing.T) {
	s := newStage(t)
	taken := workflowTurns(s, slices.Concat(
		errands("unkeyed", 6, temporal.Priority{}),
		errands("acme", 3, temporal.Priority{FairnessKey: "acme"}),
		errands("bolt", 3, temporal.Priority{FairnessKey: "bolt"}),
	))
	checkShares(s, taken[:9], map[string]int{"unkeyed": 1, "acme": 1, "bolt": 1})
	equal(s, taken[9:], []string{"unkeyed 4", "unkeyed 5", "unkeyed 6"})
}

func TestActivitiesGoByLevelAndShareALevelByWeight(t *testing.T) {
	s := newStage(t)
	taken := activityTurns(s, list{errands: slices.Concat(
		errands("batch", 2, temporal.Priority{PriorityKey: 5, FairnessKey: "premium-tier", FairnessWeight: 5}),
		tiers,
		errands("urgent", 2, temporal.Priority{PriorityKey: 1, FairnessKey: "free-tier", FairnessWeight: 2}),
	)})
	equal(s, len(taken), len(tiers)+4)
	checkShares(s, taken[:2], map[string]int{"urgent": 2})
	checkShares(s, taken[2:32], map[string]int{"premium": 5, "basic": 3, "free": 2})
	checkShares(s, taken[32:], map[string]int{"batch": 2})
}

func TestActivitiesTakeThePlaceInTheOrderOfTheirWorkflows(t *testing.T) {
	s := newStage(t)
	taken := activityTurns(s,
		list{temporal.Priority{PriorityKey: 5}, errands("batch", 1, temporal.Priority{})},
		list{temporal.Priority{FairnessKey: "acme", FairnessWeight: 3}, errands("acme", 9, temporal.Priority{})},
		// A key of their own, and the weight of their workflow.
		list{temporal.Priority{FairnessWeight: 2}, errands("bolt", 6, temporal.Priority{FairnessKey: "bolt"})},
		list{temporal.Priority{PriorityKey: 1}, errands("urgent", 1, temporal.Priority{})},
	)
	equal(s, taken[0], "urgent 1")
	checkShares(s, taken[1:16], map[string]int{"acme": 3, "bolt": 2})
	equal(s, taken[16:], []string{"batch 1"})
}

func TestChildrenGoByLevelAndShareALevelByWeight(t *testing.T) {
	s := newStage(t)
	taken := childTurns(s, list{errands: slices.Concat(
		errands("batch", 2, temporal.Priority{PriorityKey: 5, FairnessKey: "premium-tier", FairnessWeight: 5}),
		tiers,
		errands("urgent", 2, temporal.Priority{PriorityKey: 1, FairnessKey: "free-tier", FairnessWeight: 2}),
	)})
	equal(s, len(taken), len(tiers)+4)
	checkShares(s, taken[:2], map[string]int{"urgent": 2})
	for first := 2; first < 32; first += 10 {
		checkShares(s, taken[first:first+10], map[string]int{"premium": 5, "basic": 3, "free": 2})
	}
	checkShares(s, taken[32:], map[string]int{"batch": 2})
}

func TestChildrenTakeThePlaceInTheOrderOfTheirParents(t *testing.T) {
	s := newStage(t)
	taken := childTurns(s,
		list{temporal.Priority{PriorityKey: 5}, errands("batch", 1, temporal.Priority{})},
		list{temporal.Priority{FairnessKey: "acme", FairnessWeight: 3}, errands("acme", 9, temporal.Priority{})},
		// A key of their own, and the weight of their parent.
		list{temporal.Priority{FairnessWeight: 2}, errands("bolt", 6, temporal.Priority{FairnessKey: "bolt"})},
		list{temporal.Priority{PriorityKey: 1}, errands("urgent", 1, temporal.Priority{})},
	)
	equal(s, taken[0], "urgent 1")
	for first := 1; first < 16; first += 5 {
		checkShares(s, taken[first:first+5], map[string]int{"acme": 3, "bolt": 2})
	}
	equal(s, taken[16:], []string{"batch 1"})
}
