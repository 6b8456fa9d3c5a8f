package conformance.tests;

import conformance.app.Activities;
import conformance.app.ActivityWorkflows;
import conformance.app.ChildWorkflows;
import conformance.app.MessageWorkflows;
import conformance.app.TurnWorkflows;
import conformance.app.UpdateWorkflows;
import io.temporal.api.enums.v1.WorkflowExecutionStatus;
import io.temporal.api.history.v1.HistoryEvent;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowClientOptions;
import io.temporal.client.WorkflowOptions;
import io.temporal.client.WorkflowStub;
import io.temporal.common.WorkflowExecutionHistory;
import io.temporal.serviceclient.WorkflowServiceStubs;
import io.temporal.serviceclient.WorkflowServiceStubsOptions;
import io.temporal.worker.WorkerFactory;
import io.temporal.worker.WorkerOptions;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/** One test's task queue and workflow id, so that no run of a test meets another run. */
final class Stage {
  static final Duration WAIT_MAX = Duration.ofSeconds(30);

  /** Today's workflows; a test that is about deployments names its own. */
  private static final Class<?>[] WORKFLOWS = {
    ActivityWorkflows.HelloImpl.class,
    ActivityWorkflows.HelloLocallyImpl.class,
    ActivityWorkflows.RetryUntilImpl.class,
    ActivityWorkflows.PayImpl.class,
    ActivityWorkflows.ResumeByHeartbeatImpl.class,
    ActivityWorkflows.TimeOutImpl.class,
    ActivityWorkflows.CancelActivityImpl.class,
    ActivityWorkflows.CompleteElsewhereImpl.class,
    ActivityWorkflows.ReadPrioritiesImpl.class,
    ActivityWorkflows.ManyActivitiesImpl.class,
    ChildWorkflows.DelegateGreetingImpl.class,
    ChildWorkflows.DelegateOrderImpl.class,
    ChildWorkflows.DelegateNapImpl.class,
    ChildWorkflows.LeaveChildrenImpl.class,
    ChildWorkflows.RunRelayImpl.class,
    ChildWorkflows.DelegateRelayImpl.class,
    ChildWorkflows.WriteToChildImpl.class,
    ChildWorkflows.WriteToNeighbourImpl.class,
    ChildWorkflows.CancelNeighbourImpl.class,
    TurnWorkflows.RunErrandsImpl.class,
    TurnWorkflows.SendVisitorsImpl.class,
    MessageWorkflows.InboxImpl.class,
    MessageWorkflows.NapImpl.class,
    MessageWorkflows.SleepUntilWokenImpl.class,
    MessageWorkflows.RefuseImpl.class,
    MessageWorkflows.CleanUpWhenCancelledImpl.class,
    MessageWorkflows.FixedGreeting.class,
    MessageWorkflows.JourneyAfter.class,
    UpdateWorkflows.AccountImpl.class,
    UpdateWorkflows.TravellingAccountImpl.class,
  };

  private static final WorkflowServiceStubs SERVICE =
      WorkflowServiceStubs.newServiceStubs(
          WorkflowServiceStubsOptions.newBuilder()
              .setTarget(System.getenv("FAIRLEAD_ADDRESS"))
              .build());

  final WorkflowClient client =
      WorkflowClient.newInstance(
          SERVICE,
          WorkflowClientOptions.newBuilder()
              .setNamespace(
                  Optional.ofNullable(System.getenv("FAIRLEAD_NAMESPACE")).orElse("default"))
              .build());
  final String name = "conformance-java-" + UUID.randomUUID();
  final Activities.Impl activities = new Activities.Impl();

  /** A worker that runs until its block is left. */
  final class RunningWorker implements AutoCloseable {
    private final WorkerFactory factory = WorkerFactory.newInstance(client);

    private RunningWorker(
        String taskQueue, WorkerOptions options, Object activities, Class<?>... workflows) {
      var worker = factory.newWorker(taskQueue, options);
      worker.registerWorkflowImplementationTypes(workflows);
      worker.registerActivitiesImplementations(activities);
      factory.start();
    }

    @Override
    public void close() {
      factory.shutdownNow();
      factory.awaitTermination(WAIT_MAX.toSeconds(), TimeUnit.SECONDS);
    }
  }

  RunningWorker worker(Class<?>... workflows) {
    var options =
        WorkerOptions.newBuilder().setMaxHeartbeatThrottleInterval(Duration.ofMillis(100)).build();
    return new RunningWorker(
        name, options, activities, workflows.length > 0 ? workflows : WORKFLOWS);
  }

  /**
   * A worker with one slot: it asks for its next task when it is done with the last one, so the
   * order in which it works is the order in which tasks were handed out. (Half of its polls for
   * workflow tasks ask its own sticky queue. Those have to be answered with tasks of the normal
   * queue, too, or the only slot would be stuck there.)
   */
  RunningWorker oneByOne(String taskQueue, Object activities, Class<?>... workflows) {
    var options =
        WorkerOptions.newBuilder()
            .setMaxConcurrentWorkflowTaskExecutionSize(1)
            .setMaxConcurrentActivityExecutionSize(1)
            .setMaxConcurrentActivityTaskPollers(1)
            .build();
    return new RunningWorker(taskQueue, options, activities, workflows);
  }

  WorkflowOptions.Builder options() {
    return WorkflowOptions.newBuilder().setWorkflowId(name).setTaskQueue(name);
  }

  <T> T stub(Class<T> workflow) {
    return client.newWorkflowStub(workflow, options().build());
  }

  /** Starts a workflow by the name of its interface and returns an untyped handle on the run. */
  WorkflowStub start(Class<?> workflow, Object... arguments) {
    return start(options(), workflow, arguments);
  }

  WorkflowStub start(WorkflowOptions.Builder options, Class<?> workflow, Object... arguments) {
    var stub = client.newUntypedWorkflowStub(workflow.getSimpleName(), options.build());
    stub.start(arguments);
    return stub;
  }

  WorkflowExecutionHistory history(WorkflowStub run) {
    var execution = run.getExecution();
    return client.fetchHistory(execution.getWorkflowId(), execution.getRunId());
  }

  List<HistoryEvent> events(WorkflowStub run) {
    return history(run).getHistory().getEventsList();
  }

  List<String> eventNames(WorkflowStub run) {
    return events(run).stream()
        .map(event -> event.getEventType().name().replace("EVENT_TYPE_", ""))
        .toList();
  }

  /** Waits for a condition that only the server can tell, with a generous bound. */
  void until(String what, BooleanSupplier isSo) throws InterruptedException {
    var deadline = Instant.now().plus(WAIT_MAX);
    while (!isSo.getAsBoolean()) {
      if (Instant.now().isAfter(deadline)) {
        throw new AssertionError("it never came so far that " + what);
      }
      Thread.sleep(50);
    }
  }

  void untilEvent(WorkflowStub run, String event) throws InterruptedException {
    until("the history shows " + event, () -> eventNames(run).contains(event));
  }

  WorkflowExecutionStatus status(WorkflowStub run) {
    return run.describe().getStatus();
  }
}
