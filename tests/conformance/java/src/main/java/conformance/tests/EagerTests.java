package conformance.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import conformance.app.MessageWorkflows.Greeting;
import conformance.app.MessageWorkflows.Inbox;
import conformance.app.MessageWorkflows.InboxImpl;
import io.temporal.client.WorkflowStub;
import io.temporal.testing.WorkflowReplayer;
import java.util.List;
import org.junit.jupiter.api.Test;

/** First tasks that come with the answer to the start, for a worker of the same process. */
class EagerTests {
  private final Stage stage = new Stage();

  private WorkflowStub startEagerly(Class<?> workflow, Object... arguments) {
    return stage.start(stage.options().setDisableEagerExecution(false), workflow, arguments);
  }

  private boolean wasEager(WorkflowStub run) {
    var started = stage.events(run).get(0).getWorkflowExecutionStartedEventAttributes();
    return started.getEagerExecutionAccepted();
  }

  @Test
  void aWorkflowThatIsStartedEagerlyRuns() {
    try (var worker = stage.worker()) {
      var run = startEagerly(Greeting.class, "Ada");
      assertEquals("Hello, Ada!", run.getResult(String.class));
      assertTrue(wasEager(run));
    }
  }

  @Test
  void anEagerStartWithoutAWorkerWaitsForOne() {
    var run = startEagerly(Greeting.class, "Ada");
    assertFalse(wasEager(run));
    try (var worker = stage.worker()) {
      assertEquals("Hello, Ada!", run.getResult(String.class));
    }
  }

  @Test
  void theHistoryOfAnEagerWorkflowReplays() throws Exception {
    try (var worker = stage.worker()) {
      var run = startEagerly(Inbox.class);
      run.signal("deliver", "a letter");
      run.signal("close");
      assertEquals(List.of("a letter"), run.getResult(List.class));
      assertTrue(wasEager(run));
      WorkflowReplayer.replayWorkflowExecution(stage.history(run), InboxImpl.class);
    }
  }
}
