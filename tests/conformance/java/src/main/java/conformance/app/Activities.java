package conformance.app;

import io.temporal.activity.Activity;
import io.temporal.activity.ActivityInfo;
import io.temporal.activity.ActivityInterface;
import io.temporal.client.ActivityCanceledException;
import io.temporal.common.Priority;
import io.temporal.failure.ApplicationFailure;
import java.util.concurrent.CompletableFuture;

/** Activities whose behaviour the tests steer through their arguments. */
@ActivityInterface
public interface Activities {
  record Charge(int amount, String errorType, boolean nonRetryable) {}

  /** The priority an activity runs with, as its own info tells it. */
  record Seat(int level, String tenant, float weight) {}

  String greet(String name);

  /** Fails until the wanted attempt and returns the attempt's number. */
  int succeedOnAttempt(int wanted);

  void decline(Charge charge);

  /** Heartbeats its progress, fails once, and returns what the second attempt was told. */
  int resumeFromHeartbeat();

  /** Never heartbeats; the worker's shutdown interrupts it. */
  void outliveEveryTimeout();

  Seat readPriority();

  void heartbeatUntilCancelled();

  String leaveToSomeoneElse();

  /** Tells the test, which runs in the worker's process, how far it is. */
  final class Impl implements Activities {
    public final CompletableFuture<ActivityInfo> started = new CompletableFuture<>();
    public final CompletableFuture<Void> cancelled = new CompletableFuture<>();

    @Override
    public String greet(String name) {
      return "Hello, " + name + "!";
    }

    @Override
    public int succeedOnAttempt(int wanted) {
      int attempt = info().getAttempt();
      if (attempt < wanted) {
        throw ApplicationFailure.newFailure("attempt " + attempt + " is too early", "TooEarly");
      }
      return attempt;
    }

    @Override
    public void decline(Charge charge) {
      String message = "card declined on attempt " + info().getAttempt();
      throw charge.nonRetryable()
          ? ApplicationFailure.newNonRetryableFailure(message, charge.errorType(), charge.amount())
          : ApplicationFailure.newFailure(message, charge.errorType(), charge.amount());
    }

    @Override
    public int resumeFromHeartbeat() {
      var context = Activity.getExecutionContext();
      var details = context.getHeartbeatDetails(Integer.class);
      if (details.isPresent()) {
        return details.get();
      }
      for (int done = 1; done <= 3; done++) {
        context.heartbeat(done);
      }
      throw ApplicationFailure.newFailure("crashed at row 3", "Crash");
    }

    @Override
    public void outliveEveryTimeout() {
      pause(Long.MAX_VALUE);
    }

    @Override
    public Seat readPriority() {
      Priority priority = info().getPriority();
      return new Seat(
          priority.getPriorityKey(), priority.getFairnessKey(), priority.getFairnessWeight());
    }

    @Override
    public void heartbeatUntilCancelled() {
      started.complete(info());
      try {
        while (true) {
          Activity.getExecutionContext().heartbeat("still here");
          pause(50);
        }
      } catch (ActivityCanceledException e) {
        cancelled.complete(null);
        throw e;
      }
    }

    @Override
    public String leaveToSomeoneElse() {
      Activity.getExecutionContext().doNotCompleteOnReturn();
      started.complete(info());
      return "ignored";
    }

    private static ActivityInfo info() {
      return Activity.getExecutionContext().getInfo();
    }

    private static void pause(long milliseconds) {
      try {
        Thread.sleep(milliseconds);
      } catch (InterruptedException e) {
        throw ApplicationFailure.newFailure("the worker is leaving", "Interrupted");
      }
    }
  }
}
