package conformance.app;

import io.temporal.activity.ActivityInterface;
import io.temporal.common.Priority;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** An activity that notes whose turn it was. */
@ActivityInterface
public interface Turns {
  void takeTurn(String name);

  /** Keeps the turns in their order for the test, which runs in the worker's process. */
  final class Impl implements Turns {
    public final List<String> taken = new CopyOnWriteArrayList<>();

    @Override
    public void takeTurn(String name) {
      taken.add(name);
    }
  }

  /** A turn to take. 0 and "" stand for what is not set, as in the SDK's own Priority. */
  record Errand(String name, int priorityKey, String fairnessKey, float fairnessWeight) {
    public Priority priority() {
      return Priority.newBuilder()
          .setPriorityKey(priorityKey)
          .setFairnessKey(fairnessKey)
          .setFairnessWeight(fairnessWeight)
          .build();
    }
  }
}
