package conformance.app;

import conformance.app.MessageWorkflows.Greeting;
import conformance.app.MessageWorkflows.Inbox;
import conformance.app.MessageWorkflows.Nap;
import conformance.app.MessageWorkflows.Refuse;
import io.temporal.api.enums.v1.ParentClosePolicy;
import io.temporal.workflow.Async;
import io.temporal.workflow.ChildWorkflowCancellationType;
import io.temporal.workflow.ChildWorkflowOptions;
import io.temporal.workflow.Promise;
import io.temporal.workflow.SignalMethod;
import io.temporal.workflow.Workflow;
import io.temporal.workflow.WorkflowInterface;
import io.temporal.workflow.WorkflowMethod;
import java.util.ArrayList;
import java.util.List;

/** Workflows that start children, live through several runs and write to their neighbours. */
public final class ChildWorkflows {
  private static final long HOUR_MS = 3_600_000;

  /** Children are named after their parent. */
  private static ChildWorkflowOptions.Builder named(String name) {
    return ChildWorkflowOptions.newBuilder()
        .setWorkflowId(Workflow.getInfo().getWorkflowId() + "-" + name);
  }

  private static <T> T child(Class<T> workflow, ChildWorkflowOptions.Builder options) {
    return Workflow.newChildWorkflowStub(workflow, options.build());
  }

  @WorkflowInterface
  public interface DelegateGreeting {
    @WorkflowMethod
    String run(String name);
  }

  public static final class DelegateGreetingImpl implements DelegateGreeting {
    @Override
    public String run(String name) {
      return child(Greeting.class, named("greeting")).run(name);
    }
  }

  @WorkflowInterface
  public interface DelegateOrder {
    @WorkflowMethod
    void run(String order);
  }

  public static final class DelegateOrderImpl implements DelegateOrder {
    @Override
    public void run(String order) {
      child(Refuse.class, named("order")).run(order);
    }
  }

  /** Passes its own cancellation on to the child and waits for its answer. */
  @WorkflowInterface
  public interface DelegateNap {
    @WorkflowMethod
    String run();
  }

  public static final class DelegateNapImpl implements DelegateNap {
    @Override
    public String run() {
      var options =
          named("nap")
              .setCancellationType(ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED);
      return child(Nap.class, options).run(HOUR_MS);
    }
  }

  /** Starts children of two close policies and leaves when it is told to. */
  @WorkflowInterface
  public interface LeaveChildren {
    @WorkflowMethod
    void run();

    @SignalMethod
    void leave();
  }

  public static final class LeaveChildrenImpl implements LeaveChildren {
    private boolean mayLeave = false;

    @Override
    public void run() {
      start("terminated", ParentClosePolicy.PARENT_CLOSE_POLICY_TERMINATE);
      start("abandoned", ParentClosePolicy.PARENT_CLOSE_POLICY_ABANDON);
      Workflow.await(() -> mayLeave);
    }

    private static void start(String name, ParentClosePolicy policy) {
      var inbox = child(Inbox.class, named(name).setParentClosePolicy(policy));
      Async.function(inbox::run);
      Workflow.getWorkflowExecution(inbox).get();
    }

    @Override
    public void leave() {
      mayLeave = true;
    }
  }

  /** Hands over to a new run until nobody is left; the last one tells who ran. */
  @WorkflowInterface
  public interface RunRelay {
    @WorkflowMethod
    List<String> run(int left, List<String> runIds);
  }

  public static final class RunRelayImpl implements RunRelay {
    @Override
    public List<String> run(int left, List<String> runIds) {
      var ran = new ArrayList<>(runIds);
      ran.add(Workflow.getInfo().getRunId());
      if (left > 1) {
        Workflow.newContinueAsNewStub(RunRelay.class).run(left - 1, ran);
      }
      return ran;
    }
  }

  @WorkflowInterface
  public interface DelegateRelay {
    @WorkflowMethod
    List<String> run(int runners);
  }

  public static final class DelegateRelayImpl implements DelegateRelay {
    @Override
    public List<String> run(int runners) {
      return child(RunRelay.class, named("relay")).run(runners, List.of());
    }
  }

  @WorkflowInterface
  public interface WriteToChild {
    @WorkflowMethod
    List<String> run(List<String> letters);
  }

  public static final class WriteToChildImpl implements WriteToChild {
    @Override
    public List<String> run(List<String> letters) {
      var inbox = child(Inbox.class, named("inbox"));
      Promise<List<String>> delivered = Async.function(inbox::run);
      Workflow.getWorkflowExecution(inbox).get();
      letters.forEach(inbox::deliver);
      inbox.close();
      return delivered.get();
    }
  }

  @WorkflowInterface
  public interface WriteToNeighbour {
    @WorkflowMethod
    void run(String neighbour, List<String> letters);
  }

  public static final class WriteToNeighbourImpl implements WriteToNeighbour {
    @Override
    public void run(String neighbour, List<String> letters) {
      var inbox = Workflow.newExternalWorkflowStub(Inbox.class, neighbour);
      letters.forEach(inbox::deliver);
    }
  }

  @WorkflowInterface
  public interface CancelNeighbour {
    @WorkflowMethod
    void run(String neighbour);
  }

  public static final class CancelNeighbourImpl implements CancelNeighbour {
    @Override
    public void run(String neighbour) {
      Workflow.newUntypedExternalWorkflowStub(neighbour).cancel();
    }
  }

  private ChildWorkflows() {}
}
