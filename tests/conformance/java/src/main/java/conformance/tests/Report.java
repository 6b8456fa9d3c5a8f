package conformance.tests;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectPackage;

import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/** Runs every test of this package and prints one line for each on stdout. */
public final class Report implements TestExecutionListener {
  private int passed = 0;
  private int failed = 0;

  public static void main(String[] arguments) {
    var report = new Report();
    var request =
        LauncherDiscoveryRequestBuilder.request()
            .selectors(selectPackage(Report.class.getPackageName()))
            .configurationParameter("junit.jupiter.execution.timeout.default", "90 s")
            .build();
    LauncherFactory.create().execute(request, report);
    // The SDK's threads do not keep the process alive past its last test.
    System.exit(report.failed == 0 && report.passed > 0 ? 0 : 1);
  }

  @Override
  public void executionFinished(TestIdentifier test, TestExecutionResult result) {
    if (result.getThrowable().isPresent()) {
      var error = result.getThrowable().get();
      failed++;
      var reason = String.valueOf(error).replaceAll("\\s+", " ");
      System.out.println("not ok - java: " + sentence(test) + ": " + reason);
      error.printStackTrace();
    } else if (test.isTest()) {
      passed++;
      System.out.println("ok - java: " + sentence(test));
    }
  }

  /** Turns aTimerFires() into "a timer fires". */
  private static String sentence(TestIdentifier test) {
    return test.getDisplayName().replace("()", "").replaceAll("([A-Z])", " $1").toLowerCase();
  }
}
