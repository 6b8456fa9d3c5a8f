package conformance.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import conformance.app.ActivityWorkflows.Hello;
import conformance.app.ActivityWorkflows.HelloImpl;
import conformance.app.ActivityWorkflows.ManyActivities;
import conformance.app.ActivityWorkflows.ManyActivitiesImpl;
import conformance.app.MessageWorkflows.Inbox;
import conformance.app.MessageWorkflows.Journey;
import conformance.app.MessageWorkflows.JourneyAfter;
import conformance.app.MessageWorkflows.JourneyBefore;
import io.temporal.api.history.v1.HistoryEvent;
import io.temporal.client.WorkflowStub;
import io.temporal.testing.WorkflowReplayer;
import java.util.Collections;
import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** Histories that outlive the worker that made them: restarts, changes, replays, great length. */
class ReplayTests {
  private final Stage stage = new Stage();

  @Test
  void aWaitingWorkflowGoesOnUnderANewWorker() {
    WorkflowStub run;
    try (var worker = stage.worker()) {
      run = stage.start(Inbox.class);
      run.signal("deliver", "to the first worker");
      assertEquals(1, run.query("count", Integer.class));
    }
    try (var worker = stage.worker()) {
      run.signal("deliver", "to the second worker");
      run.signal("close");
      assertEquals(
          List.of("to the first worker", "to the second worker"), run.getResult(List.class));
    }
  }

  @Test
  void aRunFromBeforeAChangeKeepsItsSideEffectAndItsOldCodePath() {
    WorkflowStub run;
    String ticket;
    try (var worker = stage.worker(JourneyBefore.class)) {
      run = stage.start(Journey.class);
      ticket = run.query("ticket", String.class);
    }
    try (var worker = stage.worker(JourneyAfter.class)) {
      run.signal("goOn");
      assertEquals("old road " + ticket, run.getResult(String.class));
    }
  }

  @Test
  void aRunFromAfterAChangeRecordsItsVersionAndTakesTheNewPath() {
    try (var worker = stage.worker(JourneyAfter.class)) {
      var run = stage.start(Journey.class);
      run.signal("goOn");
      assertEquals("new road Hello, traveller!", run.getResult(String.class));
      // One marker is the side effect's, the other the version's.
      assertEquals(2, Collections.frequency(stage.eventNames(run), "MARKER_RECORDED"));
    }
  }

  @Test
  void aDownloadedHistoryReplaysWithoutNonDeterminism() throws Exception {
    try (var worker = stage.worker()) {
      var run = stage.start(Hello.class, "Ada");
      run.getResult(String.class);
      WorkflowReplayer.replayWorkflowExecution(stage.history(run).toJson(false), HelloImpl.class);
    }
  }

  @Test
  void aHistoryOfAThousandEventsHasDenseIdsAndReplays() throws Exception {
    try (var worker = stage.worker()) {
      var run = stage.start(ManyActivities.class, 17, 20);
      assertEquals(340, run.getResult(Integer.class));
      var ids = stage.events(run).stream().map(HistoryEvent::getEventId).toList();
      assertTrue(ids.size() >= 1000);
      assertEquals(LongStream.rangeClosed(1, ids.size()).boxed().toList(), ids);
      WorkflowReplayer.replayWorkflowExecution(stage.history(run), ManyActivitiesImpl.class);
    }
  }
}
