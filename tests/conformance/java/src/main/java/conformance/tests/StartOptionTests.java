package conformance.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import conformance.app.MessageWorkflows.Inbox;
import io.temporal.api.enums.v1.WorkflowExecutionStatus;
import io.temporal.api.enums.v1.WorkflowIdConflictPolicy;
import io.temporal.api.enums.v1.WorkflowIdReusePolicy;
import io.temporal.client.WorkflowExecutionAlreadyStarted;
import io.temporal.client.WorkflowStub;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** What a second start with the same workflow id does. */
class StartOptionTests {
  private final Stage stage = new Stage();

  private WorkflowStub startWith(WorkflowIdConflictPolicy policy) {
    return stage.start(stage.options().setWorkflowIdConflictPolicy(policy), Inbox.class);
  }

  @Test
  void aRunningWorkflowIdCannotBeStartedAgain() {
    var run = stage.start(Inbox.class);
    var refusal =
        assertThrows(WorkflowExecutionAlreadyStarted.class, () -> stage.start(Inbox.class));
    assertEquals(run.getExecution().getRunId(), refusal.getExecution().getRunId());
    run.terminate("the test is over");
  }

  @Test
  void aClosedWorkflowIdMayBeUsedAgainByDefault() {
    var first = stage.start(Inbox.class);
    first.terminate("make room");
    var second = stage.start(Inbox.class);
    assertNotEquals(first.getExecution().getRunId(), second.getExecution().getRunId());
    second.terminate("the test is over");
  }

  @Test
  void rejectDuplicateRefusesTheIdOfAClosedWorkflow() {
    stage.start(Inbox.class).terminate("make room");
    var options =
        stage
            .options()
            .setWorkflowIdReusePolicy(
                WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE);
    assertThrows(WorkflowExecutionAlreadyStarted.class, () -> stage.start(options, Inbox.class));
  }

  @Test
  void useExistingJoinsTheRunningWorkflow() {
    var first = stage.start(Inbox.class);
    var second = startWith(WorkflowIdConflictPolicy.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING);
    assertEquals(first.getExecution().getRunId(), second.getExecution().getRunId());
    first.terminate("the test is over");
  }

  @Test
  void terminateExistingReplacesTheRunningWorkflow() {
    var first = stage.start(Inbox.class);
    var second = startWith(WorkflowIdConflictPolicy.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING);
    var oldRun = stage.client.newUntypedWorkflowStub(first.getExecution(), Optional.empty());
    assertEquals(
        WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_TERMINATED, stage.status(oldRun));
    assertEquals(WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING, stage.status(second));
    second.terminate("the test is over");
  }
}
