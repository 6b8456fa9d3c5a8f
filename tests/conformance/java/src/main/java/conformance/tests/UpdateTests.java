package conformance.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import conformance.app.UpdateWorkflows.Account;
import conformance.app.UpdateWorkflows.AccountImpl;
import conformance.app.UpdateWorkflows.TravellingAccount;
import conformance.app.UpdateWorkflows.TravellingAccountImpl;
import io.temporal.client.UpdateOptions;
import io.temporal.client.WorkflowNotFoundException;
import io.temporal.client.WorkflowStub;
import io.temporal.client.WorkflowUpdateException;
import io.temporal.client.WorkflowUpdateHandle;
import io.temporal.client.WorkflowUpdateStage;
import io.temporal.failure.ApplicationFailure;
import io.temporal.testing.WorkflowReplayer;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** Updates of running and closed workflows. */
class UpdateTests {
  private static final String ACCEPTED = "WORKFLOW_EXECUTION_UPDATE_ACCEPTED";
  private static final String COMPLETED = "WORKFLOW_EXECUTION_UPDATE_COMPLETED";

  private final Stage stage = new Stage();

  private static ApplicationFailure refusal(Executable update) {
    var failure = assertThrows(WorkflowUpdateException.class, update);
    return (ApplicationFailure) failure.getCause();
  }

  private static void isLeftUnfinished(Executable update) {
    assertEquals("AcceptedUpdateCompletedWorkflow", refusal(update).getType());
  }

  private static <T> WorkflowUpdateHandle<T> send(
      WorkflowStub run, String id, String name, Class<T> result, Object... arguments) {
    var options =
        UpdateOptions.newBuilder(result)
            .setUpdateName(name)
            .setUpdateId(id)
            .setWaitForStage(WorkflowUpdateStage.ACCEPTED);
    return run.startUpdate(options.build(), arguments);
  }

  private static WorkflowUpdateHandle<String> startTransfer(WorkflowStub run, String to) {
    return send(run, to, "transfer", String.class, to);
  }

  private static int deposit(WorkflowStub run, int amount) {
    return run.update("deposit", Integer.class, amount);
  }

  private void closes(WorkflowStub run, String... journal) throws Exception {
    run.signal("close");
    assertEquals(List.of(journal), run.getResult(List.class));
    WorkflowReplayer.replayWorkflowExecution(stage.history(run), AccountImpl.class);
  }

  private List<String> lastNames(WorkflowStub run, int count) {
    var names = stage.eventNames(run);
    return names.subList(names.size() - count, names.size());
  }

  @Test
  void anUpdateChangesTheWorkflowAndReturnsAValue() throws Exception {
    try (var worker = stage.worker()) {
      var run = stage.start(Account.class, false);
      assertEquals(5, deposit(run, 5));
      assertEquals(12, deposit(run, 7));
      var end =
          List.of(
              "WORKFLOW_TASK_SCHEDULED",
              "WORKFLOW_TASK_STARTED",
              "WORKFLOW_TASK_COMPLETED",
              ACCEPTED,
              COMPLETED);
      assertEquals(end, lastNames(run, 5));
      closes(run, "deposit 5", "deposit 7");
    }
  }

  @Test
  void aRefusedUpdateLeavesTheWorkflowAsItWas() throws Exception {
    try (var worker = stage.worker()) {
      var run = stage.start(Account.class, false);
      assertEquals(5, deposit(run, 5));
      var before = stage.eventNames(run);
      for (int amount = -1; amount >= -3; amount--) {
        int refused = amount;
        var failure = refusal(() -> deposit(run, refused));
        assertEquals(refused + " is not an amount", failure.getOriginalMessage());
      }
      assertEquals(before, stage.eventNames(run));
      assertEquals(12, deposit(run, 7));
      closes(run, "deposit 5", "deposit 7");
    }
  }

  @Test
  void anUnknownUpdateIsRefusedByName() throws Exception {
    try (var worker = stage.worker()) {
      var run = stage.start(Account.class, false);
      var failure = refusal(() -> run.update("weather", String.class));
      assertTrue(failure.getOriginalMessage().contains("weather"));
      closes(run);
    }
  }

  @Test
  void anUpdateWhoseHandlerFailsIsAFailedUpdateOfAHealthyWorkflow() throws Exception {
    try (var worker = stage.worker()) {
      var run = stage.start(Account.class, false);
      deposit(run, 5);
      var failure = refusal(() -> run.update("withdraw", Integer.class, 6));
      assertEquals("Overdrawn", failure.getType());
      assertEquals(5, failure.getDetails().get(Integer.class));
      assertEquals(0, run.update("withdraw", Integer.class, 5));
      closes(run, "deposit 5");
    }
  }

  @Test
  void aHandlerWaitsForActivitiesAndTimersWhileSignalsArrive() throws Exception {
    try (var worker = stage.worker()) {
      var run = stage.start(Account.class, false);
      var thanks = send(run, "thanks", "thank", List.class, "Ada");
      run.signal("approve", "Bob");
      assertEquals(List.of("Hello, Ada!", "Hello, dear Ada!", "good night"), thanks.getResult());
      assertEquals("Bob has the money", run.update("transfer", String.class, "Bob"));
      closes(run, "transfer to Bob", "transferred to Bob");
    }
  }

  @Test
  void handlersOverlapAndKnowWhichUpdateTheyServe() throws Exception {
    try (var worker = stage.worker()) {
      var run = stage.start(Account.class, false);
      var first = startTransfer(run, "Ada");
      var asked = send(run, "me", "whoAsks", List.class);
      assertEquals(List.of("whoAsks", "me"), asked.getResult());
      run.signal("approve", "Ada");
      assertEquals("Ada has the money", first.getResult());
      closes(run, "transfer to Ada", "transferred to Ada");
    }
  }

  @Test
  void anUpdateIdCountsOnceAlsoAfterTheWorkflowHasClosed() throws Exception {
    try (var worker = stage.worker()) {
      var run = stage.start(Account.class, false);
      for (int time = 0; time < 2; time++) {
        assertEquals(5, send(run, "once", "deposit", Integer.class, 5).getResult());
      }
      assertEquals(1, Collections.frequency(stage.eventNames(run), ACCEPTED));
      closes(run, "deposit 5");
      assertEquals(5, send(run, "once", "deposit", Integer.class, 5).getResult());
      assertEquals(5, run.getUpdateHandle("once", Integer.class).getResult());
    }
  }

  @Test
  void anUpdateOfAClosedWorkflowIsRefusedAsNotFound() throws Exception {
    try (var worker = stage.worker()) {
      var run = stage.start(Account.class, false);
      closes(run);
      assertThrows(WorkflowNotFoundException.class, () -> deposit(run, 5));
    }
  }

  @Test
  void anUpdateMayCloseTheWorkflowInItsOwnTask() throws Exception {
    try (var worker = stage.worker()) {
      var run = stage.start(Account.class, false);
      assertEquals("closed with 0", run.update("closeAtOnce", String.class));
      assertEquals(List.of(), run.getResult(List.class));
      assertEquals(
          List.of(ACCEPTED, COMPLETED, "WORKFLOW_EXECUTION_COMPLETED"), lastNames(run, 3));
      WorkflowReplayer.replayWorkflowExecution(stage.history(run), AccountImpl.class);
    }
  }

  @Test
  void anAcceptedUpdateFailsWhenTheWorkflowCompletesBeforeIt() throws Exception {
    try (var worker = stage.worker()) {
      var run = stage.start(Account.class, false);
      var update = startTransfer(run, "Ada");
      closes(run, "transfer to Ada");
      isLeftUnfinished(update::getResult);
      isLeftUnfinished(() -> run.getUpdateHandle("Ada", String.class).getResult());
    }
  }

  @Test
  void aPatientWorkflowLetsItsUpdatesFinish() throws Exception {
    try (var worker = stage.worker()) {
      var run = stage.start(Account.class, true);
      var update = startTransfer(run, "Ada");
      run.signal("close");
      assertEquals(List.of("transfer to Ada"), run.query("entries", List.class));
      run.signal("approve", "Ada");
      assertEquals("Ada has the money", update.getResult());
      assertEquals(List.of("transfer to Ada", "transferred to Ada"), run.getResult(List.class));
      WorkflowReplayer.replayWorkflowExecution(stage.history(run), AccountImpl.class);
    }
  }

  @Test
  void anUpdateWaitsForAWorkerThatComesLater() throws Exception {
    WorkflowStub run;
    WorkflowUpdateHandle<String> update;
    try (var worker = stage.worker()) {
      run = stage.start(Account.class, false);
      assertEquals(5, deposit(run, 5));
      update = startTransfer(run, "Ada");
    }
    var later = run.getUpdateHandle("Ada", String.class).getResultAsync();
    run.signal("approve", "Ada");
    try (var worker = stage.worker()) {
      assertEquals("Ada has the money", later.get(Stage.WAIT_MAX.toSeconds(), TimeUnit.SECONDS));
      assertEquals("Ada has the money", update.getResult());
      assertEquals(12, deposit(run, 7));
      closes(run, "deposit 5", "transfer to Ada", "transferred to Ada", "deposit 7");
    }
  }

  @Test
  void updatesFindTheNewestRunOfAChainAndDoNotFollowItThere() throws Exception {
    try (var worker = stage.worker()) {
      var first = stage.start(TravellingAccount.class, 0);
      var execution = first.getExecution();
      var old = stage.client.newUntypedWorkflowStub(execution, Optional.empty());
      var chain = stage.client.newUntypedWorkflowStub(stage.name);
      assertEquals(5, deposit(chain, 5));
      var update = send(old, "Ada", "transfer", Void.class);
      old.signal("move");
      stage.untilEvent(first, "WORKFLOW_EXECUTION_CONTINUED_AS_NEW");
      isLeftUnfinished(update::getResult);
      assertEquals(12, deposit(chain, 7));
      assertThrows(WorkflowNotFoundException.class, () -> deposit(old, 9));
      WorkflowReplayer.replayWorkflowExecution(stage.history(first), TravellingAccountImpl.class);
      chain.terminate("the test is over");
    }
  }
}
