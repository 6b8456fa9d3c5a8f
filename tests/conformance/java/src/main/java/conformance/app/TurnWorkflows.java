package conformance.app;

import conformance.app.Turns.Errand;
import io.temporal.activity.ActivityOptions;
import io.temporal.activity.LocalActivityOptions;
import io.temporal.workflow.Async;
import io.temporal.workflow.ChildWorkflowOptions;
import io.temporal.workflow.Promise;
import io.temporal.workflow.Workflow;
import io.temporal.workflow.WorkflowInterface;
import io.temporal.workflow.WorkflowMethod;
import java.time.Duration;
import java.util.Arrays;

/** Workflows that tell in which order they, or their activities, got their turn. */
public final class TurnWorkflows {
  private static final Duration MINUTE = Duration.ofMinutes(1);

  /** Takes its turn in its first task: that is where a local activity runs. */
  @WorkflowInterface
  public interface VisitOnce {
    @WorkflowMethod
    void run(String name);
  }

  public static final class VisitOnceImpl implements VisitOnce {
    @Override
    public void run(String name) {
      var options = LocalActivityOptions.newBuilder().setStartToCloseTimeout(MINUTE).build();
      Workflow.newLocalActivityStub(Turns.class, options).takeTurn(name);
    }
  }

  /** Schedules all errands at once, as activities of another queue. */
  @WorkflowInterface
  public interface RunErrands {
    @WorkflowMethod
    void run(String taskQueue, Errand[] errands);
  }

  public static final class RunErrandsImpl implements RunErrands {
    @Override
    public void run(String taskQueue, Errand[] errands) {
      var underWay = Arrays.stream(errands).map(errand -> start(taskQueue, errand)).toList();
      Promise.allOf(underWay).get();
    }

    private static Promise<Void> start(String taskQueue, Errand errand) {
      var options =
          ActivityOptions.newBuilder()
              .setTaskQueue(taskQueue)
              .setStartToCloseTimeout(MINUTE)
              .setPriority(errand.priority())
              .build();
      var turns = Workflow.newActivityStub(Turns.class, options);
      return Async.procedure(turns::takeTurn, errand.name());
    }
  }

  /** Starts all errands at once, as children on another queue. */
  @WorkflowInterface
  public interface SendVisitors {
    @WorkflowMethod
    void run(String taskQueue, Errand[] errands);
  }

  public static final class SendVisitorsImpl implements SendVisitors {
    @Override
    public void run(String taskQueue, Errand[] errands) {
      var underWay = Arrays.stream(errands).map(errand -> start(taskQueue, errand)).toList();
      Promise.allOf(underWay).get();
    }

    private static Promise<Void> start(String taskQueue, Errand errand) {
      var options =
          ChildWorkflowOptions.newBuilder()
              .setWorkflowId(Workflow.getInfo().getWorkflowId() + " " + errand.name())
              .setTaskQueue(taskQueue)
              .setPriority(errand.priority())
              .build();
      var visitor = Workflow.newChildWorkflowStub(VisitOnce.class, options);
      return Async.procedure(visitor::run, errand.name());
    }
  }

  private TurnWorkflows() {}
}
