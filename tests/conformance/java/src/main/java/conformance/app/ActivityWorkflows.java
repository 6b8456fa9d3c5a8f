package conformance.app;

import io.temporal.activity.ActivityCancellationType;
import io.temporal.activity.ActivityOptions;
import io.temporal.activity.LocalActivityOptions;
import io.temporal.common.Priority;
import io.temporal.common.RetryOptions;
import io.temporal.workflow.Async;
import io.temporal.workflow.Promise;
import io.temporal.workflow.Workflow;
import io.temporal.workflow.WorkflowInterface;
import io.temporal.workflow.WorkflowMethod;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** Workflows that are mostly one activity with interesting options. */
public final class ActivityWorkflows {
  private static final Duration MINUTE = Duration.ofMinutes(1);
  private static final Duration SECOND = Duration.ofSeconds(1);

  private static ActivityOptions.Builder withinMinute() {
    return ActivityOptions.newBuilder().setStartToCloseTimeout(MINUTE);
  }

  private static RetryOptions.Builder quickRetry() {
    return RetryOptions.newBuilder()
        .setInitialInterval(Duration.ofMillis(50))
        .setBackoffCoefficient(1);
  }

  private static Activities stub(ActivityOptions.Builder options) {
    return Workflow.newActivityStub(Activities.class, options.build());
  }

  @WorkflowInterface
  public interface Hello {
    @WorkflowMethod
    String greet(String name);
  }

  public static final class HelloImpl implements Hello {
    @Override
    public String greet(String name) {
      return stub(withinMinute()).greet(name);
    }
  }

  @WorkflowInterface
  public interface HelloLocally {
    @WorkflowMethod
    String greet(String name);
  }

  public static final class HelloLocallyImpl implements HelloLocally {
    @Override
    public String greet(String name) {
      var options = LocalActivityOptions.newBuilder().setStartToCloseTimeout(MINUTE).build();
      return Workflow.newLocalActivityStub(Activities.class, options).greet(name);
    }
  }

  @WorkflowInterface
  public interface RetryUntil {
    @WorkflowMethod
    int run(int wanted);
  }

  public static final class RetryUntilImpl implements RetryUntil {
    @Override
    public int run(int wanted) {
      return stub(withinMinute().setRetryOptions(quickRetry().build())).succeedOnAttempt(wanted);
    }
  }

  @WorkflowInterface
  public interface Pay {
    @WorkflowMethod
    void run(Activities.Charge charge);
  }

  public static final class PayImpl implements Pay {
    @Override
    public void run(Activities.Charge charge) {
      var retry = quickRetry().setMaximumAttempts(3).setDoNotRetry("StolenCard").build();
      stub(withinMinute().setRetryOptions(retry)).decline(charge);
    }
  }

  @WorkflowInterface
  public interface ResumeByHeartbeat {
    @WorkflowMethod
    int run();
  }

  public static final class ResumeByHeartbeatImpl implements ResumeByHeartbeat {
    @Override
    public int run() {
      var retry = quickRetry().setMaximumAttempts(2).build();
      return stub(withinMinute().setHeartbeatTimeout(MINUTE).setRetryOptions(retry))
          .resumeFromHeartbeat();
    }
  }

  /** Waits for an activity that ends only by the timeout named in the argument. */
  @WorkflowInterface
  public interface TimeOut {
    @WorkflowMethod
    void run(String timeout);
  }

  public static final class TimeOutImpl implements TimeOut {
    @Override
    public void run(String timeout) {
      var options = withinMinute().setRetryOptions(quickRetry().setMaximumAttempts(1).build());
      switch (timeout) {
        case "heartbeat" -> options.setHeartbeatTimeout(SECOND);
        case "start to close" -> options.setStartToCloseTimeout(SECOND);
        default ->
            options
                .setScheduleToStartTimeout(SECOND)
                .setTaskQueue("nobody-polls-" + Workflow.getInfo().getWorkflowId());
      }
      stub(options).outliveEveryTimeout();
    }
  }

  /** Passes its own cancellation on to the activity and waits for its answer. */
  @WorkflowInterface
  public interface CancelActivity {
    @WorkflowMethod
    void run();
  }

  public static final class CancelActivityImpl implements CancelActivity {
    @Override
    public void run() {
      stub(withinMinute()
              .setHeartbeatTimeout(Duration.ofSeconds(30))
              .setCancellationType(ActivityCancellationType.WAIT_CANCELLATION_COMPLETED))
          .heartbeatUntilCancelled();
    }
  }

  @WorkflowInterface
  public interface CompleteElsewhere {
    @WorkflowMethod
    String run();
  }

  public static final class CompleteElsewhereImpl implements CompleteElsewhere {
    @Override
    public String run() {
      return stub(withinMinute()).leaveToSomeoneElse();
    }
  }

  /** Returns what activities see that set no field of their priority, all of them, or one. */
  @WorkflowInterface
  public interface ReadPriorities {
    @WorkflowMethod
    Activities.Seat[] run();
  }

  public static final class ReadPrioritiesImpl implements ReadPriorities {
    @Override
    public Activities.Seat[] run() {
      var priorities =
          List.of(
              Priority.newBuilder(),
              Priority.newBuilder()
                  .setPriorityKey(1)
                  .setFairnessKey("bolt")
                  .setFairnessWeight(2.5f),
              Priority.newBuilder().setPriorityKey(1),
              Priority.newBuilder().setFairnessKey("bolt"),
              Priority.newBuilder().setFairnessWeight(2.5f));
      return priorities.stream()
          .map(priority -> stub(withinMinute().setPriority(priority.build())).readPriority())
          .toArray(Activities.Seat[]::new);
    }
  }

  /** Runs rounds of parallel activities, to grow a long history. */
  @WorkflowInterface
  public interface ManyActivities {
    @WorkflowMethod
    int run(int rounds, int width);
  }

  public static final class ManyActivitiesImpl implements ManyActivities {
    @Override
    public int run(int rounds, int width) {
      var activities = stub(withinMinute());
      int done = 0;
      for (int round = 0; round < rounds; round++) {
        List<Promise<String>> calls = new ArrayList<>();
        for (int guest = 0; guest < width; guest++) {
          calls.add(Async.function(activities::greet, "guest " + guest));
        }
        Promise.allOf(calls).get();
        done += calls.size();
      }
      return done;
    }
  }

  private ActivityWorkflows() {}
}
