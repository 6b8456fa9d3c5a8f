package conformance.app;

import io.temporal.activity.ActivityOptions;
import io.temporal.failure.ApplicationFailure;
import io.temporal.failure.CanceledFailure;
import io.temporal.workflow.Promise;
import io.temporal.workflow.QueryMethod;
import io.temporal.workflow.SignalMethod;
import io.temporal.workflow.Workflow;
import io.temporal.workflow.WorkflowInterface;
import io.temporal.workflow.WorkflowMethod;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;

/** Workflows that wait for signals, answer queries, sleep and end in different ways. */
public final class MessageWorkflows {
  private static Activities newActivities() {
    return Workflow.newActivityStub(
        Activities.class,
        ActivityOptions.newBuilder().setStartToCloseTimeout(Duration.ofMinutes(1)).build());
  }

  /** Collects letters until it is told to close; tells how many it has when asked. */
  @WorkflowInterface
  public interface Inbox {
    @WorkflowMethod
    List<String> run();

    @SignalMethod
    void deliver(String letter);

    @SignalMethod
    void close();

    @QueryMethod
    int count();

    @QueryMethod
    String letter(int index);
  }

  public static final class InboxImpl implements Inbox {
    private final List<String> letters = new ArrayList<>();
    private boolean isClosed = false;

    @Override
    public List<String> run() {
      Workflow.await(() -> isClosed);
      return letters;
    }

    @Override
    public void deliver(String letter) {
      letters.add(letter);
    }

    @Override
    public void close() {
      isClosed = true;
    }

    @Override
    public int count() {
      return letters.size();
    }

    @Override
    public String letter(int index) {
      if (index >= letters.size()) {
        throw new IllegalArgumentException("there is no letter " + index);
      }
      return letters.get(index);
    }
  }

  @WorkflowInterface
  public interface Nap {
    @WorkflowMethod
    String run(long milliseconds);
  }

  public static final class NapImpl implements Nap {
    @Override
    public String run(long milliseconds) {
      Workflow.sleep(milliseconds);
      return "awake";
    }
  }

  /** Races a day-long timer against a signal; the loser is cancelled. */
  @WorkflowInterface
  public interface SleepUntilWoken {
    @WorkflowMethod
    String run();

    @SignalMethod
    void wake();
  }

  public static final class SleepUntilWokenImpl implements SleepUntilWoken {
    private boolean isWoken = false;
    private Promise<Void> bell;

    @Override
    public String run() {
      var timer = Workflow.newCancellationScope(() -> bell = Workflow.newTimer(Duration.ofDays(1)));
      timer.run();
      Workflow.await(() -> isWoken || bell.isCompleted());
      timer.cancel();
      return isWoken ? "woken" : "slept in";
    }

    @Override
    public void wake() {
      isWoken = true;
    }
  }

  @WorkflowInterface
  public interface Refuse {
    @WorkflowMethod
    void run(String order);
  }

  public static final class RefuseImpl implements Refuse {
    @Override
    public void run(String order) {
      throw ApplicationFailure.newNonRetryableFailure(
          "order " + order + " is out of stock", "OutOfStock", order, 0);
    }
  }

  /** Does its cleaning in a scope that its own cancellation does not reach. */
  @WorkflowInterface
  public interface CleanUpWhenCancelled {
    @WorkflowMethod
    void run();
  }

  public static final class CleanUpWhenCancelledImpl implements CleanUpWhenCancelled {
    private final Activities activities = newActivities();

    @Override
    public void run() {
      try {
        Workflow.sleep(Duration.ofDays(1));
      } catch (CanceledFailure e) {
        Workflow.newDetachedCancellationScope(() -> activities.greet("cleaner")).run();
        throw e;
      }
    }
  }

  @WorkflowInterface
  public interface Greeting {
    @WorkflowMethod
    String run(String name);
  }

  /** Deployed by mistake: an ordinary exception fails the task, not the workflow. */
  public static final class BrokenGreeting implements Greeting {
    @Override
    public String run(String name) {
      throw new IllegalStateException("nobody tested this version");
    }
  }

  public static final class FixedGreeting implements Greeting {
    @Override
    public String run(String name) {
      return "Hello, " + name + "!";
    }
  }

  /** Draws a ticket by a side effect, waits and travels. */
  @WorkflowInterface
  public interface Journey {
    @WorkflowMethod
    String run();

    @SignalMethod
    void goOn();

    @QueryMethod
    String ticket();
  }

  public static class JourneyBefore implements Journey {
    protected String ticket = "";
    protected boolean mayGoOn = false;

    @Override
    public String run() {
      ticket = Workflow.sideEffect(String.class, () -> UUID.randomUUID().toString());
      return takeOldRoad();
    }

    protected String takeOldRoad() {
      Workflow.await(() -> mayGoOn);
      Workflow.sleep(10);
      return "old road " + ticket;
    }

    @Override
    public void goOn() {
      mayGoOn = true;
    }

    @Override
    public String ticket() {
      return ticket;
    }
  }

  public static final class JourneyAfter extends JourneyBefore {
    private final Activities activities = newActivities();

    @Override
    public String run() {
      ticket = Workflow.sideEffect(String.class, () -> UUID.randomUUID().toString());
      int version = Workflow.getVersion("new road", Workflow.DEFAULT_VERSION, 1);
      if (version == Workflow.DEFAULT_VERSION) {
        return takeOldRoad();
      }
      Workflow.await(() -> mayGoOn);
      return "new road " + activities.greet("traveller");
    }
  }

  private MessageWorkflows() {}
}
