package conformance.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import conformance.app.MessageWorkflows.Inbox;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowNotFoundException;
import io.temporal.client.WorkflowQueryException;
import io.temporal.client.WorkflowStub;
import java.util.Collections;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Signals and queries. */
class MessageTests {
  private final Stage stage = new Stage();

  @Test
  void signalsArriveOnceEachAndInOrder() {
    var letters = IntStream.range(0, 10).mapToObj(number -> "letter " + number).toList();
    try (var worker = stage.worker()) {
      var inbox = stage.stub(Inbox.class);
      WorkflowClient.start(inbox::run);
      letters.forEach(inbox::deliver);
      inbox.close();
      var run = WorkflowStub.fromTyped(inbox);
      assertEquals(letters, run.getResult(List.class));
      int signals = Collections.frequency(stage.eventNames(run), "WORKFLOW_EXECUTION_SIGNALED");
      assertEquals(letters.size() + 1, signals);
    }
  }

  @Test
  void signalWithStartDeliversToANewAndToARunningWorkflow() {
    var first = client().signalWithStart("deliver", new Object[] {"one"}, new Object[] {});
    var second = client().signalWithStart("deliver", new Object[] {"two"}, new Object[] {});
    assertEquals(first.getRunId(), second.getRunId());
    try (var worker = stage.worker()) {
      var run = stage.client.newUntypedWorkflowStub(stage.name);
      run.signal("close");
      assertEquals(List.of("one", "two"), run.getResult(List.class));
    }
  }

  private WorkflowStub client() {
    return stage.client.newUntypedWorkflowStub("Inbox", stage.options().build());
  }

  @Test
  void signallingAClosedWorkflowIsRefusedAsNotFound() {
    var run = stage.start(Inbox.class);
    run.terminate("closed for the test");
    assertThrows(WorkflowNotFoundException.class, () -> run.signal("deliver", "too late"));
  }

  @Test
  void aRunningAndACompletedWorkflowAnswerQueries() {
    try (var worker = stage.worker()) {
      var inbox = stage.stub(Inbox.class);
      WorkflowClient.start(inbox::run);
      inbox.deliver("one");
      assertEquals(1, inbox.count());
      inbox.close();
      assertEquals(List.of("one"), WorkflowStub.fromTyped(inbox).getResult(List.class));
      assertEquals("one", inbox.letter(0));
    }
  }

  @Test
  void aQueryThatFailsOrIsUnknownTellsTheCallerWhy() {
    try (var worker = stage.worker()) {
      var run = stage.start(Inbox.class);
      var failure =
          assertThrows(WorkflowQueryException.class, () -> run.query("letter", String.class, 7));
      assertTrue(failure.getCause().getMessage().contains("there is no letter 7"));
      var refusal =
          assertThrows(WorkflowQueryException.class, () -> run.query("weather", String.class));
      assertTrue(refusal.getCause().getMessage().contains("weather"));
      run.terminate("the test is over");
    }
  }
}
