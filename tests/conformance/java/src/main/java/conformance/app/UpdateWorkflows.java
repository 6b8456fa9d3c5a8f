package conformance.app;

import io.temporal.activity.ActivityOptions;
import io.temporal.activity.LocalActivityOptions;
import io.temporal.failure.ApplicationFailure;
import io.temporal.workflow.QueryMethod;
import io.temporal.workflow.SignalMethod;
import io.temporal.workflow.UpdateMethod;
import io.temporal.workflow.UpdateValidatorMethod;
import io.temporal.workflow.Workflow;
import io.temporal.workflow.WorkflowInit;
import io.temporal.workflow.WorkflowInterface;
import io.temporal.workflow.WorkflowMethod;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** Workflows that are asked to change and that answer: updates in all their variety. */
public final class UpdateWorkflows {
  /**
   * Keeps a balance until it is closed, and a journal of what it was asked to do. A patient account
   * first lets the updates finish that it has begun.
   */
  @WorkflowInterface
  public interface Account {
    @WorkflowMethod
    List<String> run(boolean isPatient);

    @UpdateMethod
    int deposit(int amount);

    @UpdateValidatorMethod(updateName = "deposit")
    void checkDeposit(int amount);

    @UpdateMethod
    int withdraw(int amount);

    /** Waits for somebody to approve it, who may take years. */
    @UpdateMethod
    String transfer(String to);

    /** Thanks by an activity, by a local one, and sleeps over it. */
    @UpdateMethod
    List<String> thank(String name);

    @UpdateMethod
    List<String> whoAsks();

    @UpdateMethod
    String closeAtOnce();

    @SignalMethod
    void approve(String to);

    @SignalMethod
    void close();

    @QueryMethod
    List<String> entries();
  }

  public static final class AccountImpl implements Account {
    private static final Duration LIMIT = Duration.ofMinutes(1);

    private final Activities activities =
        Workflow.newActivityStub(
            Activities.class, ActivityOptions.newBuilder().setStartToCloseTimeout(LIMIT).build());
    private final Activities localActivities =
        Workflow.newLocalActivityStub(
            Activities.class,
            LocalActivityOptions.newBuilder().setStartToCloseTimeout(LIMIT).build());
    private final List<String> journal = new ArrayList<>();
    private final Set<String> approved = new HashSet<>();
    private int balance = 0;
    private boolean isClosed = false;

    @Override
    public List<String> run(boolean isPatient) {
      Workflow.await(() -> isClosed);
      if (isPatient) {
        Workflow.await(Workflow::isEveryHandlerFinished);
      }
      return journal;
    }

    @Override
    public int deposit(int amount) {
      journal.add("deposit " + amount);
      balance += amount;
      return balance;
    }

    @Override
    public void checkDeposit(int amount) {
      if (amount <= 0) {
        throw new IllegalArgumentException(amount + " is not an amount");
      }
    }

    @Override
    public int withdraw(int amount) {
      if (amount > balance) {
        throw ApplicationFailure.newNonRetryableFailure(
            "only " + balance + " left", "Overdrawn", balance);
      }
      balance -= amount;
      return balance;
    }

    @Override
    public String transfer(String to) {
      journal.add("transfer to " + to);
      Workflow.await(() -> approved.contains(to));
      journal.add("transferred to " + to);
      return to + " has the money";
    }

    @Override
    public List<String> thank(String name) {
      var thanks = activities.greet(name);
      var locally = localActivities.greet("dear " + name);
      Workflow.sleep(10);
      return List.of(thanks, locally, "good night");
    }

    @Override
    public List<String> whoAsks() {
      Workflow.sleep(10);
      var info = Workflow.getCurrentUpdateInfo().orElseThrow();
      return List.of(info.getUpdateName(), info.getUpdateId());
    }

    @Override
    public String closeAtOnce() {
      isClosed = true;
      return "closed with " + balance;
    }

    @Override
    public void approve(String to) {
      approved.add(to);
    }

    @Override
    public void close() {
      isClosed = true;
    }

    @Override
    public List<String> entries() {
      return journal;
    }
  }

  /** Moves its balance to a new run whenever it is told to. */
  @WorkflowInterface
  public interface TravellingAccount {
    @WorkflowMethod
    void run(int balance);

    @UpdateMethod
    int deposit(int amount);

    @UpdateMethod
    void transfer();

    @SignalMethod
    void move();
  }

  public static final class TravellingAccountImpl implements TravellingAccount {
    private int balance;
    private boolean moves = false;

    /** An update may come before the workflow method has begun. */
    @WorkflowInit
    public TravellingAccountImpl(int balance) {
      this.balance = balance;
    }

    @Override
    public void run(int unused) {
      Workflow.await(() -> moves);
      Workflow.continueAsNew(balance);
    }

    @Override
    public int deposit(int amount) {
      balance += amount;
      return balance;
    }

    @Override
    public void transfer() {
      Workflow.await(() -> false);
    }

    @Override
    public void move() {
      moves = true;
    }
  }

  private UpdateWorkflows() {}
}
