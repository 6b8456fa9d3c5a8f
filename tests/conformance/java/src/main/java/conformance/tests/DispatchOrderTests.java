package conformance.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;

import conformance.app.TurnWorkflows.RunErrands;
import conformance.app.TurnWorkflows.SendVisitors;
import conformance.app.TurnWorkflows.VisitOnce;
import conformance.app.TurnWorkflows.VisitOnceImpl;
import conformance.app.Turns;
import conformance.app.Turns.Errand;
import io.temporal.client.WorkflowStub;
import io.temporal.common.Priority;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Whose turn it is: strict levels, and inside a level each tenant's exact share. */
class DispatchOrderTests {
  /** The busiest tenant's work comes in one burst: by order of arrival the others would starve. */
  private static final List<Errand> TIERS =
      join(
          errands("premium", 15, 0, "premium-tier", 5),
          errands("basic", 9, 0, "basic-tier", 3),
          errands("free", 6, 0, "free-tier", 2));

  private static final Map<String, Integer> TIER_SHARES =
      Map.of("premium", 5, "basic", 3, "free", 2);

  private final Stage stage = new Stage();
  private final Turns.Impl turns = new Turns.Impl();

  private static List<Errand> errands(
      String name, int count, int priorityKey, String fairnessKey, float fairnessWeight) {
    return IntStream.rangeClosed(1, count)
        .mapToObj(n -> new Errand(name + " " + n, priorityKey, fairnessKey, fairnessWeight))
        .toList();
  }

  private static List<Errand> errands(String name, int count, int priorityKey) {
    return errands(name, count, priorityKey, "", 0);
  }

  @SafeVarargs
  private static List<Errand> join(List<Errand>... lists) {
    return Stream.of(lists).flatMap(Collection::stream).toList();
  }

  private static String tenant(String turn) {
    return turn.split(" ")[0];
  }

  /** Any run of consecutive turns that is as long as the sum of all shares holds exactly these. */
  private static void assertShares(Map<String, Integer> shares, List<String> taken) {
    int length = shares.values().stream().mapToInt(Integer::intValue).sum();
    for (int first = 0; first + length <= taken.size(); first++) {
      var counts = new HashMap<String, Integer>();
      for (var turn : taken.subList(first, first + length)) {
        counts.merge(tenant(turn), 1, Integer::sum);
      }
      assertEquals(shares, counts, "from turn " + first + " of " + taken);
    }
  }

  /** Each tenant's turns come in the order in which they were asked for. */
  private static void assertFirstComeFirstServed(List<String> taken) {
    var counts = new HashMap<String, Integer>();
    for (var turn : taken) {
      assertEquals(tenant(turn) + " " + counts.merge(tenant(turn), 1, Integer::sum), turn);
    }
  }

  /** Starts workflows while nobody works, then lets one worker take them one by one. */
  private List<String> workflowTurns(List<Errand> guests) {
    var runs = new ArrayList<WorkflowStub>();
    for (var guest : guests) {
      var options =
          stage
              .options()
              .setWorkflowId(stage.name + " " + guest.name())
              .setPriority(guest.priority());
      runs.add(stage.start(options, VisitOnce.class, guest.name()));
    }
    try (var worker = stage.oneByOne(stage.name, turns, VisitOnceImpl.class)) {
      runs.forEach(run -> run.getResult(Void.class));
    }
    return turns.taken;
  }

  /** What one workflow schedules, and with which priority the workflow itself runs. */
  private record Plan(Priority.Builder priority, List<Errand> errands) {}

  /** Lets workflows schedule activities that nobody runs yet; then one worker takes them. */
  private List<String> activityTurns(Plan... plans) throws InterruptedException {
    var queue = stage.name + "-errands";
    try (var planner = stage.worker()) {
      var runs = new ArrayList<WorkflowStub>();
      for (var plan : plans) {
        var options =
            stage
                .options()
                .setWorkflowId(stage.name + "-" + runs.size())
                .setPriority(plan.priority().build());
        runs.add(stage.start(options, RunErrands.class, queue, plan.errands()));
      }
      for (var run : runs) {
        stage.untilEvent(run, "ACTIVITY_TASK_SCHEDULED");
      }
      try (var worker = stage.oneByOne(queue, turns)) {
        runs.forEach(run -> run.getResult(Void.class));
      }
    }
    return turns.taken;
  }

  /**
   * Lets workflows start children that nobody works for yet; then one worker takes them. Each child
   * is started by itself, so siblings of one tenant may wait in any order.
   */
  private List<String> childTurns(Plan... plans) throws InterruptedException {
    var queue = stage.name + "-visitors";
    try (var planner = stage.worker()) {
      var runs = new ArrayList<WorkflowStub>();
      for (var plan : plans) {
        var options =
            stage
                .options()
                .setWorkflowId(stage.name + "-" + runs.size())
                .setPriority(plan.priority().build());
        runs.add(stage.start(options, SendVisitors.class, queue, plan.errands()));
      }
      for (int i = 0; i < plans.length; i++) {
        var run = runs.get(i);
        int children = plans[i].errands().size();
        stage.until(
            "all children wait",
            () ->
                Collections.frequency(
                        stage.eventNames(run), "CHILD_WORKFLOW_EXECUTION_STARTED")
                    == children);
      }
      try (var worker = stage.oneByOne(queue, turns, VisitOnceImpl.class)) {
        runs.forEach(run -> run.getResult(Void.class));
      }
    }
    return turns.taken;
  }

  @Test
  void urgentWorkflowsGoFirstAndThreeIsTheDefault() {
    var taken =
        workflowTurns(
            join(
                errands("batch", 2, 5),
                errands("ordinary", 2, 0),
                errands("three", 2, 3),
                errands("urgent", 2, 1)));
    assertEquals(
        List.of(
            "urgent 1", "urgent 2", "ordinary 1", "ordinary 2", "three 1", "three 2", "batch 1",
            "batch 2"),
        taken);
  }

  @Test
  void workflowsOfThreeTiersShareEveryTenTurnsByWeight() {
    var taken = workflowTurns(TIERS);
    assertEquals(TIERS.size(), taken.size());
    assertShares(TIER_SHARES, taken);
    assertFirstComeFirstServed(taken);
  }

  @Test
  void workflowsWithoutAKeyAreOneTenantAmongOthers() {
    var taken =
        workflowTurns(
            join(
                errands("unkeyed", 6, 0),
                errands("acme", 3, 0, "acme", 0),
                errands("bolt", 3, 0, "bolt", 0)));
    assertShares(Map.of("unkeyed", 1, "acme", 1, "bolt", 1), taken.subList(0, 9));
    assertEquals(List.of("unkeyed 4", "unkeyed 5", "unkeyed 6"), taken.subList(9, 12));
  }

  @Test
  void activitiesGoByLevelAndShareALevelByWeight() throws InterruptedException {
    var errands =
        join(
            errands("batch", 2, 5, "premium-tier", 5),
            TIERS,
            errands("urgent", 2, 1, "free-tier", 2));
    var taken = activityTurns(new Plan(Priority.newBuilder(), errands));
    assertEquals(TIERS.size() + 4, taken.size());
    assertShares(Map.of("urgent", 2), taken.subList(0, 2));
    assertShares(TIER_SHARES, taken.subList(2, 32));
    assertShares(Map.of("batch", 2), taken.subList(32, 34));
  }

  @Test
  void activitiesTakeThePlaceInTheOrderOfTheirWorkflows() throws InterruptedException {
    var taken =
        activityTurns(
            new Plan(Priority.newBuilder().setPriorityKey(5), errands("batch", 1, 0)),
            new Plan(
                Priority.newBuilder().setFairnessKey("acme").setFairnessWeight(3),
                errands("acme", 9, 0)),
            // A key of their own, and the weight of their workflow.
            new Plan(
                Priority.newBuilder().setFairnessWeight(2), errands("bolt", 6, 0, "bolt", 0)),
            new Plan(Priority.newBuilder().setPriorityKey(1), errands("urgent", 1, 0)));
    assertEquals(17, taken.size());
    assertEquals("urgent 1", taken.get(0));
    assertShares(Map.of("acme", 3, "bolt", 2), taken.subList(1, 16));
    assertEquals("batch 1", taken.get(16));
  }

  @Test
  void childrenGoByLevelAndShareALevelByWeight() throws InterruptedException {
    var errands =
        join(
            errands("batch", 2, 5, "premium-tier", 5),
            TIERS,
            errands("urgent", 2, 1, "free-tier", 2));
    var taken = childTurns(new Plan(Priority.newBuilder(), errands));
    assertEquals(TIERS.size() + 4, taken.size());
    assertShares(Map.of("urgent", 2), taken.subList(0, 2));
    for (int first = 2; first < 32; first += 10) {
      assertShares(TIER_SHARES, taken.subList(first, first + 10));
    }
    assertShares(Map.of("batch", 2), taken.subList(32, 34));
  }

  @Test
  void childrenTakeThePlaceInTheOrderOfTheirParents() throws InterruptedException {
    var taken =
        childTurns(
            new Plan(Priority.newBuilder().setPriorityKey(5), errands("batch", 1, 0)),
            new Plan(
                Priority.newBuilder().setFairnessKey("acme").setFairnessWeight(3),
                errands("acme", 9, 0)),
            // A key of their own, and the weight of their parent.
            new Plan(
                Priority.newBuilder().setFairnessWeight(2), errands("bolt", 6, 0, "bolt", 0)),
            new Plan(Priority.newBuilder().setPriorityKey(1), errands("urgent", 1, 0)));
    assertEquals(17, taken.size());
    assertEquals("urgent 1", taken.get(0));
    for (int first = 1; first < 16; first += 5) {
      assertShares(Map.of("acme", 3, "bolt", 2), taken.subList(first, first + 5));
    }
    assertEquals("batch 1", taken.get(16));
  }
}
