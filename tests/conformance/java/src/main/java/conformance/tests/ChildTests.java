package conformance.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;

import conformance.app.ChildWorkflows.DelegateGreeting;
import conformance.app.ChildWorkflows.DelegateGreetingImpl;
import conformance.app.ChildWorkflows.DelegateNap;
import conformance.app.ChildWorkflows.DelegateNapImpl;
import conformance.app.ChildWorkflows.DelegateOrder;
import conformance.app.ChildWorkflows.DelegateOrderImpl;
import conformance.app.ChildWorkflows.DelegateRelay;
import conformance.app.ChildWorkflows.DelegateRelayImpl;
import conformance.app.ChildWorkflows.LeaveChildren;
import conformance.app.ChildWorkflows.LeaveChildrenImpl;
import conformance.app.ChildWorkflows.RunRelay;
import io.temporal.api.enums.v1.WorkflowExecutionStatus;
import io.temporal.client.WorkflowFailedException;
import io.temporal.client.WorkflowStub;
import io.temporal.failure.ApplicationFailure;
import io.temporal.failure.CanceledFailure;
import io.temporal.failure.ChildWorkflowFailure;
import io.temporal.testing.WorkflowReplayer;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Children and their parents, and workflows of several runs. */
class ChildTests {
  private final Stage stage = new Stage();

  private WorkflowStub child(String name) {
    return stage.client.newUntypedWorkflowStub(stage.name + "-" + name);
  }

  private int count(WorkflowStub run, String event) {
    return Collections.frequency(stage.eventNames(run), event);
  }

  private void replay(WorkflowStub run, Class<?> implementation) throws Exception {
    WorkflowReplayer.replayWorkflowExecution(stage.history(run), implementation);
  }

  @Test
  void aChildCompletesAndItsParentGetsTheResult() throws Exception {
    try (var worker = stage.worker()) {
      var run = stage.start(DelegateGreeting.class, "Ada");
      assertEquals("Hello, Ada!", run.getResult(String.class));
      assertEquals(1, count(run, "START_CHILD_WORKFLOW_EXECUTION_INITIATED"));
      assertEquals(1, count(run, "CHILD_WORKFLOW_EXECUTION_STARTED"));
      assertEquals(1, count(run, "CHILD_WORKFLOW_EXECUTION_COMPLETED"));
      replay(run, DelegateGreetingImpl.class);
    }
  }

  @Test
  void aFailedChildIsTheCauseOfTheFailureOfItsParent() throws Exception {
    try (var worker = stage.worker()) {
      var run = stage.start(DelegateOrder.class, "A-17");
      var end = assertThrows(WorkflowFailedException.class, () -> run.getResult(Void.class));
      var failure = assertInstanceOf(ChildWorkflowFailure.class, end.getCause());
      assertEquals("Refuse", failure.getWorkflowType());
      assertEquals(stage.name + "-order", failure.getExecution().getWorkflowId());
      var cause = assertInstanceOf(ApplicationFailure.class, failure.getCause());
      assertEquals("OutOfStock", cause.getType());
      assertEquals("order A-17 is out of stock", cause.getOriginalMessage());
      replay(run, DelegateOrderImpl.class);
    }
  }

  @Test
  void aCancelledParentPassesItsCancellationOnToItsChild() throws Exception {
    try (var worker = stage.worker()) {
      var run = stage.start(DelegateNap.class);
      stage.untilEvent(run, "CHILD_WORKFLOW_EXECUTION_STARTED");
      run.cancel();
      var end = assertThrows(WorkflowFailedException.class, () -> run.getResult(String.class));
      assertInstanceOf(CanceledFailure.class, end.getCause());
      var canceled = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_CANCELED;
      assertEquals(canceled, stage.status(run));
      assertEquals(canceled, stage.status(child("nap")));
      assertEquals(1, count(run, "CHILD_WORKFLOW_EXECUTION_CANCELED"));
      replay(run, DelegateNapImpl.class);
    }
  }

  @Test
  void aParentThatCompletesTreatsEachChildByItsClosePolicy() throws Exception {
    try (var worker = stage.worker()) {
      var run = stage.start(LeaveChildren.class);
      stage.until(
          "both children run", () -> count(run, "CHILD_WORKFLOW_EXECUTION_STARTED") == 2);
      run.signal("leave");
      run.getResult(Void.class);

      var terminated = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_TERMINATED;
      stage.until(
          "a child is terminated", () -> stage.status(child("terminated")) == terminated);
      var abandoned = child("abandoned");
      assertEquals(
          WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING, stage.status(abandoned));
      abandoned.signal("deliver", "to whom it may concern");
      abandoned.signal("close");
      assertEquals(List.of("to whom it may concern"), abandoned.getResult(List.class));
      replay(run, LeaveChildrenImpl.class);
    }
  }

  @Test
  void threeRunsThatContinueAsNewGiveOneResult() {
    try (var worker = stage.worker()) {
      var run = stage.start(RunRelay.class, 3, List.of());
      var first = run.getExecution().getRunId();
      List<String> runIds = List.of(run.getResult(String[].class));
      assertEquals(3, runIds.size());
      assertEquals(first, runIds.get(0));
      for (int index = 1; index < 3; index++) {
        var started =
            stage.client
                .fetchHistory(stage.name, runIds.get(index))
                .getHistory()
                .getEvents(0)
                .getWorkflowExecutionStartedEventAttributes();
        assertEquals(runIds.get(index - 1), started.getContinuedExecutionRunId());
        assertEquals(first, started.getFirstExecutionRunId());
      }
    }
  }

  @Test
  void aChildThatContinuesAsNewIsOneChild() throws Exception {
    try (var worker = stage.worker()) {
      var run = stage.start(DelegateRelay.class, 3);
      assertEquals(3, run.getResult(List.class).size());
      assertEquals(1, count(run, "CHILD_WORKFLOW_EXECUTION_STARTED"));
      assertEquals(1, count(run, "CHILD_WORKFLOW_EXECUTION_COMPLETED"));
      replay(run, DelegateRelayImpl.class);
    }
  }
}
