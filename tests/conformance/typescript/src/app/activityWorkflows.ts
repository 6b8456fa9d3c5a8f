// Workflows that are mostly one activity with interesting options.
import { Priority } from '@temporalio/common';
import {
  ActivityCancellationType,
  ActivityOptions,
  proxyActivities,
  proxyLocalActivities,
  RetryPolicy,
  workflowInfo,
} from '@temporalio/workflow';
import type * as activities from './activities';
import type { Charge, Seat, watched } from './activities';

type WatchedActivities = ReturnType<typeof watched>['activities'];

const minute: ActivityOptions = { startToCloseTimeout: '1 minute' };

function quickRetry(options: RetryPolicy = {}): RetryPolicy {
  return { initialInterval: 50, backoffCoefficient: 1, ...options };
}

const plain = proxyActivities<typeof activities>(minute);
const local = proxyLocalActivities<typeof activities>({ startToCloseTimeout: '1 minute' });

export async function hello(name: string): Promise<string> {
  return await plain.greet(name);
}

export async function helloLocally(name: string): Promise<string> {
  return await local.greet(name);
}

export async function retryUntil(wanted: number): Promise<number> {
  return await proxyActivities<typeof activities>({ ...minute, retry: quickRetry() }).succeedOnAttempt(
    wanted,
  );
}

export async function pay(charge: Charge): Promise<void> {
  const retry = quickRetry({ maximumAttempts: 3, nonRetryableErrorTypes: ['StolenCard'] });
  await proxyActivities<typeof activities>({ ...minute, retry }).decline(charge);
}

export async function resumeByHeartbeat(): Promise<number> {
  return await proxyActivities<typeof activities>({
    ...minute,
    heartbeatTimeout: '1 minute',
    retry: quickRetry({ maximumAttempts: 2 }),
  }).resumeFromHeartbeat();
}

export type Timeout = 'heartbeat' | 'startToClose' | 'scheduleToStart';

/** Waits for an activity that ends only by the timeout named in the argument. */
export async function timeOut(timeout: Timeout): Promise<void> {
  const options: Record<Timeout, ActivityOptions> = {
    heartbeat: { ...minute, heartbeatTimeout: '1 second' },
    startToClose: { startToCloseTimeout: '1 second' },
    scheduleToStart: {
      ...minute,
      scheduleToStartTimeout: '1 second',
      taskQueue: `nobody-polls-${workflowInfo().workflowId}`,
    },
  };
  const retry = { maximumAttempts: 1 };
  await proxyActivities<typeof activities>({ ...options[timeout], retry }).outliveEveryTimeout();
}

/** Passes its own cancellation on to the activity and waits for its answer. */
export async function cancelActivity(): Promise<void> {
  await proxyActivities<WatchedActivities>({
    ...minute,
    heartbeatTimeout: '30 seconds',
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  }).heartbeatUntilCancelled();
}

export async function completeElsewhere(): Promise<string> {
  return await proxyActivities<WatchedActivities>({
    ...minute,
    retry: { maximumAttempts: 1 },
  }).leaveToSomeoneElse();
}

/** Returns what activities see that set no field of their priority, all of them, or one. */
export async function readPriorities(): Promise<Seat[]> {
  const priorities: Priority[] = [
    {},
    { priorityKey: 1, fairnessKey: 'bolt', fairnessWeight: 2.5 },
    { priorityKey: 1 },
    { fairnessKey: 'bolt' },
    { fairnessWeight: 2.5 },
  ];
  const seats = [];
  for (const priority of priorities) {
    const { readPriority } = proxyActivities<typeof activities>({ ...minute, priority });
    seats.push(await readPriority());
  }
  return seats;
}

/** Runs rounds of parallel activities, to grow a long history. */
export async function manyActivities(rounds: number, width: number): Promise<number> {
  let done = 0;
  for (let round = 0; round < rounds; round++) {
    const calls = Array.from({ length: width }, (_, guest) => plain.greet(`guest ${guest}`));
    done += (await Promise.all(calls)).length;
  }
  return done;
}
