package conformance.tests;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import conformance.app.Activities.Charge;
import conformance.app.Activities.Seat;
import conformance.app.ActivityWorkflows.CancelActivity;
import conformance.app.ActivityWorkflows.CompleteElsewhere;
import conformance.app.ActivityWorkflows.Hello;
import conformance.app.ActivityWorkflows.HelloLocally;
import conformance.app.ActivityWorkflows.Pay;
import conformance.app.ActivityWorkflows.ReadPriorities;
import conformance.app.ActivityWorkflows.ResumeByHeartbeat;
import conformance.app.ActivityWorkflows.RetryUntil;
import conformance.app.ActivityWorkflows.TimeOut;
import io.temporal.activity.ActivityInfo;
import io.temporal.api.enums.v1.RetryState;
import io.temporal.api.enums.v1.TimeoutType;
import io.temporal.client.WorkflowFailedException;
import io.temporal.common.Priority;
import io.temporal.failure.ActivityFailure;
import io.temporal.failure.ApplicationFailure;
import io.temporal.failure.CanceledFailure;
import io.temporal.failure.TimeoutFailure;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Activities: results, retries, failures, timeouts, cancellation and priority. */
class ActivityTests {
  static final List<String> HELLO_HISTORY =
      List.of(
          "WORKFLOW_EXECUTION_STARTED",
          "WORKFLOW_TASK_SCHEDULED",
          "WORKFLOW_TASK_STARTED",
          "WORKFLOW_TASK_COMPLETED",
          "ACTIVITY_TASK_SCHEDULED",
          "ACTIVITY_TASK_STARTED",
          "ACTIVITY_TASK_COMPLETED",
          "WORKFLOW_TASK_SCHEDULED",
          "WORKFLOW_TASK_STARTED",
          "WORKFLOW_TASK_COMPLETED",
          "WORKFLOW_EXECUTION_COMPLETED");

  private final Stage stage = new Stage();

  @Test
  void helloWithAnActivityLeavesExactlyTheExpectedHistory() {
    try (var worker = stage.worker()) {
      var run = stage.start(Hello.class, "Ada");
      assertEquals("Hello, Ada!", run.getResult(String.class));
      assertEquals(HELLO_HISTORY, stage.eventNames(run));
    }
  }

  @Test
  void aFailingActivityIsRetriedUntilItSucceeds() {
    try (var worker = stage.worker()) {
      var run = stage.start(RetryUntil.class, 3);
      assertEquals(3, run.getResult(Integer.class));

      // Attempts that are retried leave no events of their own: only the last one is written.
      assertEquals(HELLO_HISTORY, stage.eventNames(run));
      var started = stage.events(run).get(5).getActivityTaskStartedEventAttributes();
      assertEquals(3, started.getAttempt());
      assertEquals("attempt 2 is too early", started.getLastFailure().getMessage());
    }
  }

  private ActivityFailure pay(Charge charge) {
    try (var worker = stage.worker()) {
      var run = stage.start(Pay.class, charge);
      var failure = assertThrows(WorkflowFailedException.class, () -> run.getResult(Void.class));
      return assertInstanceOf(ActivityFailure.class, failure.getCause());
    }
  }

  @Test
  void anActivityThatExhaustsItsAttemptsFailsWithItsLastError() {
    var failure = pay(new Charge(40, "Declined", false));
    assertEquals("Decline", failure.getActivityType());
    assertEquals(RetryState.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED, failure.getRetryState());
    var cause = assertInstanceOf(ApplicationFailure.class, failure.getCause());
    assertEquals("Declined", cause.getType());
    assertEquals("card declined on attempt 3", cause.getOriginalMessage());
    assertEquals(40, cause.getDetails().get(Integer.class));
  }

  @Test
  void anErrorTypeListedAsNonRetryableIsNotRetried() {
    var failure = pay(new Charge(40, "StolenCard", false));
    assertEquals(RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE, failure.getRetryState());
    var cause = assertInstanceOf(ApplicationFailure.class, failure.getCause());
    assertEquals("card declined on attempt 1", cause.getOriginalMessage());
  }

  @Test
  void anErrorThatSaysItIsNonRetryableIsNotRetried() {
    var failure = pay(new Charge(40, "Declined", true));
    var cause = assertInstanceOf(ApplicationFailure.class, failure.getCause());
    assertTrue(cause.isNonRetryable());
    assertEquals("card declined on attempt 1", cause.getOriginalMessage());
  }

  @Test
  void heartbeatDetailsSurviveARetry() {
    try (var worker = stage.worker()) {
      assertEquals(3, stage.stub(ResumeByHeartbeat.class).run());
    }
  }

  private TimeoutType timeOut(String timeout) {
    try (var worker = stage.worker()) {
      var run = stage.start(TimeOut.class, timeout);
      var failure = assertThrows(WorkflowFailedException.class, () -> run.getResult(Void.class));
      var activityFailure = assertInstanceOf(ActivityFailure.class, failure.getCause());
      assertTrue(stage.eventNames(run).contains("ACTIVITY_TASK_TIMED_OUT"));
      return assertInstanceOf(TimeoutFailure.class, activityFailure.getCause()).getTimeoutType();
    }
  }

  @Test
  void aSilentActivityMeetsItsHeartbeatTimeout() {
    assertEquals(TimeoutType.TIMEOUT_TYPE_HEARTBEAT, timeOut("heartbeat"));
  }

  @Test
  void aSlowActivityMeetsItsStartToCloseTimeout() {
    assertEquals(TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE, timeOut("start to close"));
  }

  @Test
  void anActivityNobodyPollsForMeetsItsScheduleToStartTimeout() {
    assertEquals(TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_START, timeOut("schedule to start"));
  }

  private static <T> T await(Future<T> report) throws Exception {
    return report.get(Stage.WAIT_MAX.toSeconds(), TimeUnit.SECONDS);
  }

  @Test
  void cancellingAWorkflowReachesItsHeartbeatingActivity() throws Exception {
    try (var worker = stage.worker()) {
      var run = stage.start(CancelActivity.class);
      await(stage.activities.started);
      run.cancel();
      await(stage.activities.cancelled);
      var failure = assertThrows(WorkflowFailedException.class, () -> run.getResult(Void.class));
      assertInstanceOf(CanceledFailure.class, failure.getCause());
      var history = stage.eventNames(run);
      assertTrue(history.contains("ACTIVITY_TASK_CANCEL_REQUESTED"));
      assertTrue(history.contains("ACTIVITY_TASK_CANCELED"));
      assertEquals("WORKFLOW_EXECUTION_CANCELED", history.get(history.size() - 1));
    }
  }

  @Test
  void anActivityCanBeCompletedByItsTaskToken() throws Exception {
    try (var worker = stage.worker()) {
      var run = stage.start(CompleteElsewhere.class);
      ActivityInfo info = await(stage.activities.started);
      stage.client.newActivityCompletionClient().complete(info.getTaskToken(), "done by token");
      assertEquals("done by token", run.getResult(String.class));
    }
  }

  @Test
  void anActivityCanBeCompletedByItsId() throws Exception {
    try (var worker = stage.worker()) {
      var run = stage.start(CompleteElsewhere.class);
      ActivityInfo info = await(stage.activities.started);
      var runId = Optional.of(run.getExecution().getRunId());
      stage
          .client
          .newActivityCompletionClient()
          .complete(stage.name, runId, info.getActivityId(), "done by id");
      assertEquals("done by id", run.getResult(String.class));
    }
  }

  @Test
  void aLocalActivityLeavesAMarkerInsteadOfActivityEvents() {
    try (var worker = stage.worker()) {
      var run = stage.start(HelloLocally.class, "Ada");
      assertEquals("Hello, Ada!", run.getResult(String.class));
      var history = stage.eventNames(run);
      assertTrue(history.contains("MARKER_RECORDED"));
      assertTrue(history.stream().noneMatch(event -> event.startsWith("ACTIVITY_TASK")));
    }
  }

  @Test
  void anActivityInheritsEachFieldOfItsPriorityThatItDoesNotSet() {
    var priority =
        Priority.newBuilder().setPriorityKey(2).setFairnessKey("acme").setFairnessWeight(4).build();
    try (var worker = stage.worker()) {
      var run = stage.start(stage.options().setPriority(priority), ReadPriorities.class);
      var expected =
          new Seat[] {
            new Seat(2, "acme", 4),
            new Seat(1, "bolt", 2.5f),
            new Seat(1, "acme", 4),
            new Seat(2, "bolt", 4),
            new Seat(2, "acme", 2.5f),
          };
      assertArrayEquals(expected, run.getResult(Seat[].class));
    }
  }
}
