package conformance.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import conformance.app.UpdateWorkflows.Account;
import conformance.app.UpdateWorkflows.AccountImpl;
import io.temporal.api.enums.v1.WorkflowIdConflictPolicy;
import io.temporal.client.UpdateOptions;
import io.temporal.client.WithStartWorkflowOperation;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowServiceException;
import io.temporal.client.WorkflowStub;
import io.temporal.client.WorkflowUpdateException;
import io.temporal.client.WorkflowUpdateHandle;
import io.temporal.client.WorkflowUpdateStage;
import io.temporal.testing.WorkflowReplayer;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Update-with-start: one call that finds or makes the workflow and has it answer. */
class UpdateWithStartTests {
  private static final WorkflowIdConflictPolicy FAIL =
      WorkflowIdConflictPolicy.WORKFLOW_ID_CONFLICT_POLICY_FAIL;
  private static final WorkflowIdConflictPolicy USE_EXISTING =
      WorkflowIdConflictPolicy.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING;

  private final Stage stage = new Stage();

  /** Deposits into the stage's account, which is opened when there is none. */
  private WorkflowUpdateHandle<Integer> deposit(
      int amount, String id, WorkflowIdConflictPolicy policy) {
    var options = stage.options().setWorkflowIdConflictPolicy(policy).build();
    var account = stage.client.newWorkflowStub(Account.class, options);
    var update =
        UpdateOptions.newBuilder(Integer.class)
            .setUpdateId(id)
            .setWaitForStage(WorkflowUpdateStage.COMPLETED);
    return WorkflowClient.startUpdateWithStart(
        account::deposit,
        amount,
        update.build(),
        new WithStartWorkflowOperation<>(account::run, false));
  }

  private WorkflowStub account() {
    return stage.client.newUntypedWorkflowStub(stage.name);
  }

  private void closes(String... journal) throws Exception {
    var run = account();
    run.signal("close");
    assertEquals(List.of(journal), run.getResult(List.class));
    var history = stage.client.fetchHistory(stage.name);
    WorkflowReplayer.replayWorkflowExecution(history, AccountImpl.class);
  }

  @Test
  void anUpdateStartsTheWorkflowAndRidesOnItsFirstTask() throws Exception {
    try (var worker = stage.worker()) {
      assertEquals(5, deposit(5, "five", FAIL).getResult());
      var names =
          stage.client.fetchHistory(stage.name).getEvents().stream()
              .map(event -> event.getEventType().name().replace("EVENT_TYPE_", ""))
              .toList();
      assertEquals(
          List.of(
              "WORKFLOW_EXECUTION_STARTED",
              "WORKFLOW_TASK_SCHEDULED",
              "WORKFLOW_TASK_STARTED",
              "WORKFLOW_TASK_COMPLETED",
              "WORKFLOW_EXECUTION_UPDATE_ACCEPTED",
              "WORKFLOW_EXECUTION_UPDATE_COMPLETED"),
          names);
      closes("deposit 5");
    }
  }

  @Test
  void anUpdateUsesTheWorkflowThatRunsWhenItMay() throws Exception {
    try (var worker = stage.worker()) {
      var first = deposit(5, "five", USE_EXISTING);
      var second = deposit(7, "seven", USE_EXISTING);
      assertEquals(12, second.getResult());
      assertEquals(first.getExecution(), second.getExecution());
      closes("deposit 5", "deposit 7");
    }
  }

  @Test
  void aWorkflowThatRunsAlreadyIsAConflictAndHearsNothing() throws Exception {
    try (var worker = stage.worker()) {
      var run = stage.start(Account.class, false);
      assertEquals(5, run.update("deposit", Integer.class, 5));
      var before = stage.eventNames(run);
      assertThrows(WorkflowServiceException.class, () -> deposit(7, "seven", FAIL));
      assertEquals(before, stage.eventNames(run));
      closes("deposit 5");
    }
  }

  @Test
  void anUpdateIdSentTwiceCountsOnceAlsoAfterTheWorkflowHasClosed() throws Exception {
    try (var worker = stage.worker()) {
      var first = deposit(5, "once", FAIL);
      assertEquals(first.getExecution(), deposit(5, "once", FAIL).getExecution());
      closes("deposit 5");
      var again = deposit(5, "once", FAIL);
      assertEquals(5, again.getResult());
      assertEquals(first.getExecution(), again.getExecution());
      // Another update is new work and gets a new run.
      var other = deposit(7, "twice", FAIL);
      assertEquals(7, other.getResult());
      assertNotEquals(first.getExecution(), other.getExecution());
      closes("deposit 7");
    }
  }

  @Test
  void aRefusedUpdateLeavesTheWorkflowThatItStarted() throws Exception {
    try (var worker = stage.worker()) {
      assertThrows(
          WorkflowUpdateException.class, () -> deposit(-5, "minus five", FAIL).getResult());
      assertEquals(5, account().update("deposit", Integer.class, 5));
      closes("deposit 5");
    }
  }
}
