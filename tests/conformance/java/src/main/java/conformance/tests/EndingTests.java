package conformance.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import conformance.app.MessageWorkflows.BrokenGreeting;
import conformance.app.MessageWorkflows.CleanUpWhenCancelled;
import conformance.app.MessageWorkflows.FixedGreeting;
import conformance.app.MessageWorkflows.Greeting;
import conformance.app.MessageWorkflows.Nap;
import conformance.app.MessageWorkflows.Refuse;
import conformance.app.MessageWorkflows.SleepUntilWoken;
import io.temporal.api.enums.v1.TimeoutType;
import io.temporal.api.enums.v1.WorkflowExecutionStatus;
import io.temporal.client.WorkflowFailedException;
import io.temporal.client.WorkflowNotFoundException;
import io.temporal.client.WorkflowStub;
import io.temporal.failure.ApplicationFailure;
import io.temporal.failure.CanceledFailure;
import io.temporal.failure.TerminatedFailure;
import io.temporal.failure.TimeoutFailure;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

/** How workflows end: failed, cancelled, terminated or timed out; and timers on the way. */
class EndingTests {
  private static final long HOUR_MS = 3_600_000;

  private final Stage stage = new Stage();

  private static <T extends Throwable> T causeOfFailure(WorkflowStub run, Class<T> type) {
    var failure = assertThrows(WorkflowFailedException.class, () -> run.getResult(String.class));
    return assertInstanceOf(type, failure.getCause());
  }

  @Test
  void aTimerFires() {
    try (var worker = stage.worker()) {
      var run = stage.start(Nap.class, 200);
      assertEquals("awake", run.getResult(String.class));
      assertEquals(
          List.of(
              "WORKFLOW_EXECUTION_STARTED",
              "WORKFLOW_TASK_SCHEDULED",
              "WORKFLOW_TASK_STARTED",
              "WORKFLOW_TASK_COMPLETED",
              "TIMER_STARTED",
              "TIMER_FIRED",
              "WORKFLOW_TASK_SCHEDULED",
              "WORKFLOW_TASK_STARTED",
              "WORKFLOW_TASK_COMPLETED",
              "WORKFLOW_EXECUTION_COMPLETED"),
          stage.eventNames(run));
    }
  }

  @Test
  void aTimerThatLostTheRaceIsCancelled() throws Exception {
    try (var worker = stage.worker()) {
      var run = stage.start(SleepUntilWoken.class);
      stage.untilEvent(run, "TIMER_STARTED");
      run.signal("wake");
      assertEquals("woken", run.getResult(String.class));
      var history = stage.eventNames(run);
      assertTrue(history.contains("TIMER_CANCELED"));
      assertFalse(history.contains("TIMER_FIRED"));
    }
  }

  @Test
  void aFailedWorkflowShowsTheClientItsTypeMessageAndDetails() {
    try (var worker = stage.worker()) {
      var run = stage.start(Refuse.class, "A-17");
      var cause = causeOfFailure(run, ApplicationFailure.class);
      assertEquals("OutOfStock", cause.getType());
      assertEquals("order A-17 is out of stock", cause.getOriginalMessage());
      assertEquals("A-17", cause.getDetails().get(0, String.class));
      assertEquals(WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_FAILED, stage.status(run));
    }
  }

  @Test
  void aWorkflowOutlivesABrokenDeployment() throws Exception {
    WorkflowStub run;
    try (var worker = stage.worker(BrokenGreeting.class)) {
      run = stage.start(Greeting.class, "Ada");
      stage.untilEvent(run, "WORKFLOW_TASK_FAILED");
    }
    assertEquals(WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING, stage.status(run));
    try (var worker = stage.worker(FixedGreeting.class)) {
      assertEquals("Hello, Ada!", run.getResult(String.class));
    }
    // However many times the broken task was tried, the history tells of one failure.
    assertEquals(1, Collections.frequency(stage.eventNames(run), "WORKFLOW_TASK_FAILED"));
  }

  @Test
  void aCancelledWorkflowEndsAsCancelled() throws Exception {
    try (var worker = stage.worker()) {
      var run = stage.start(Nap.class, HOUR_MS);
      stage.untilEvent(run, "TIMER_STARTED");
      run.cancel();
      causeOfFailure(run, CanceledFailure.class);
      assertEquals(WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_CANCELED, stage.status(run));
    }
  }

  @Test
  void aCancelledWorkflowMayStillRunActivitiesToCleanUp() throws Exception {
    try (var worker = stage.worker()) {
      var run = stage.start(CleanUpWhenCancelled.class);
      stage.untilEvent(run, "TIMER_STARTED");
      run.cancel();
      causeOfFailure(run, CanceledFailure.class);
      var history = stage.eventNames(run);
      assertTrue(history.contains("ACTIVITY_TASK_COMPLETED"));
      assertEquals("WORKFLOW_EXECUTION_CANCELED", history.get(history.size() - 1));
    }
  }

  @Test
  void aTerminatedWorkflowEndsAtOnceAndWithoutAWorker() {
    var run = stage.start(Nap.class, HOUR_MS);
    run.terminate("spring cleaning");
    var cause = causeOfFailure(run, TerminatedFailure.class);
    assertEquals("spring cleaning", cause.getOriginalMessage());
    assertEquals(WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_TERMINATED, stage.status(run));
    assertThrows(WorkflowNotFoundException.class, () -> run.terminate("again"));
  }

  @Test
  void aWorkflowThatOverrunsItsRunTimeoutIsTimedOut() {
    try (var worker = stage.worker()) {
      var options = stage.options().setWorkflowRunTimeout(Duration.ofSeconds(1));
      var run = stage.start(options, Nap.class, HOUR_MS);
      var cause = causeOfFailure(run, TimeoutFailure.class);
      assertEquals(TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE, cause.getTimeoutType());
      assertEquals(WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_TIMED_OUT, stage.status(run));
    }
  }
}
