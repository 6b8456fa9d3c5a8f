package conformance.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import conformance.app.ChildWorkflows.CancelNeighbour;
import conformance.app.ChildWorkflows.CancelNeighbourImpl;
import conformance.app.ChildWorkflows.WriteToChild;
import conformance.app.ChildWorkflows.WriteToChildImpl;
import conformance.app.ChildWorkflows.WriteToNeighbour;
import conformance.app.ChildWorkflows.WriteToNeighbourImpl;
import conformance.app.MessageWorkflows.Inbox;
import conformance.app.MessageWorkflows.Nap;
import io.temporal.client.WorkflowFailedException;
import io.temporal.client.WorkflowOptions;
import io.temporal.failure.ApplicationFailure;
import io.temporal.failure.CanceledFailure;
import io.temporal.testing.WorkflowReplayer;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Workflows that signal and cancel other workflows. */
class NeighbourTests {
  private static final List<String> LETTERS = List.of("one", "two", "three");
  private static final long HOUR_MS = 3_600_000;

  private final Stage stage = new Stage();

  private final String neighbourId = stage.name + "-neighbour";

  private WorkflowOptions.Builder neighbour() {
    return stage.options().setWorkflowId(neighbourId);
  }

  @Test
  void aParentSignalsItsChild() throws Exception {
    try (var worker = stage.worker()) {
      var run = stage.start(WriteToChild.class, LETTERS);
      assertEquals(LETTERS, run.getResult(List.class));
      WorkflowReplayer.replayWorkflowExecution(stage.history(run), WriteToChildImpl.class);
    }
  }

  @Test
  void aWorkflowSignalsItsNeighbour() throws Exception {
    try (var worker = stage.worker()) {
      var neighbour = stage.start(neighbour(), Inbox.class);
      var run = stage.start(WriteToNeighbour.class, neighbourId, LETTERS);
      run.getResult(Void.class);
      neighbour.signal("close");
      assertEquals(LETTERS, neighbour.getResult(List.class));
      WorkflowReplayer.replayWorkflowExecution(stage.history(run), WriteToNeighbourImpl.class);
    }
  }

  @Test
  void aSignalToAWorkflowThatIsNotThereFails() {
    try (var worker = stage.worker()) {
      var run = stage.start(WriteToNeighbour.class, "nobody", LETTERS);
      var end = assertThrows(WorkflowFailedException.class, () -> run.getResult(Void.class));
      var cause = assertInstanceOf(ApplicationFailure.class, end.getCause());
      assertTrue(cause.getType().endsWith("EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND"));
      assertTrue(stage.eventNames(run).contains("SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED"));
    }
  }

  @Test
  void aWorkflowCancelsItsNeighbour() throws Exception {
    try (var worker = stage.worker()) {
      var neighbour = stage.start(neighbour(), Nap.class, HOUR_MS);
      var run = stage.start(CancelNeighbour.class, neighbourId);
      run.getResult(Void.class);
      var end = assertThrows(WorkflowFailedException.class, () -> neighbour.getResult(Void.class));
      assertInstanceOf(CanceledFailure.class, end.getCause());
      WorkflowReplayer.replayWorkflowExecution(stage.history(run), CancelNeighbourImpl.class);
    }
  }
}
