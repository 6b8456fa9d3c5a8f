// Activities whose behaviour the tests steer through their arguments.
import { activityInfo, CompleteAsyncError, Context, heartbeat, Info, sleep } from '@temporalio/activity';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';

export interface Charge {
  amount: number;
  errorType: string;
  nonRetryable?: boolean;
}

/** The priority an activity runs with, as its own info tells it. */
export interface Seat {
  level?: number;
  tenant?: string;
  weight?: number;
}

export async function greet(name: string): Promise<string> {
  return `Hello, ${name}!`;
}

/** Fails until the wanted attempt and returns the attempt's number. */
export async function succeedOnAttempt(wanted: number): Promise<number> {
  const { attempt } = activityInfo();
  if (attempt < wanted)
    throw ApplicationFailure.create({ message: `attempt ${attempt} is too early`, type: 'TooEarly' });
  return attempt;
}

export async function decline({ amount, errorType, nonRetryable }: Charge): Promise<void> {
  const message = `card declined on attempt ${activityInfo().attempt}`;
  throw ApplicationFailure.create({ message, type: errorType, nonRetryable, details: [{ amount }] });
}

/** Heartbeats its progress, fails once, and returns what the second attempt was told. */
export async function resumeFromHeartbeat(): Promise<number> {
  const { attempt, heartbeatDetails } = activityInfo();
  if (attempt > 1) return heartbeatDetails;
  for (let done = 1; done <= 3; done++) heartbeat(done);
  throw ApplicationFailure.create({ message: 'crashed at row 3' });
}

/** Never heartbeats and never ends by itself; the worker's shutdown cancels it. */
export async function outliveEveryTimeout(): Promise<void> {
  await Context.current().cancelled;
}

export async function readPriority(): Promise<Seat> {
  const priority = activityInfo().priority;
  return { level: priority?.priorityKey, tenant: priority?.fairnessKey, weight: priority?.fairnessWeight };
}

/** Activities that tell the test, which runs in the worker's process, how far they are. */
export function watched() {
  let reportStarted!: (info: Info) => void;
  let reportCancelled!: () => void;
  return {
    started: new Promise<Info>((resolve) => (reportStarted = resolve)),
    cancelled: new Promise<void>((resolve) => (reportCancelled = resolve)),
    activities: {
      async heartbeatUntilCancelled(): Promise<void> {
        reportStarted(activityInfo());
        try {
          for (;;) {
            heartbeat('still here');
            await sleep(50);
          }
        } catch (error) {
          if (error instanceof CancelledFailure) reportCancelled();
          throw error;
        }
      },

      async leaveToSomeoneElse(): Promise<string> {
        reportStarted(activityInfo());
        throw new CompleteAsyncError();
      },
    },
  };
}

/** An activity that notes whose turn it was, for the test, which runs in the worker's process. */
export function turns() {
  const taken: string[] = [];
  return {
    taken,
    activities: {
      async takeTurn(name: string): Promise<void> {
        taken.push(name);
      },
    },
  };
}
