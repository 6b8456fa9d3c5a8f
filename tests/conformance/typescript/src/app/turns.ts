// Workflows that tell in which order they, or their activities, got their turn.
import { Priority } from '@temporalio/common';
import { executeChild, proxyActivities, proxyLocalActivities, workflowInfo } from '@temporalio/workflow';
import type { turns } from './activities';

type TurnActivities = ReturnType<typeof turns>['activities'];

export interface Errand {
  name: string;
  priority?: Priority;
}

/** Takes its turn in its first task: that is where a local activity runs. */
export async function visitOnce(name: string): Promise<void> {
  await proxyLocalActivities<TurnActivities>({ startToCloseTimeout: '1 minute' }).takeTurn(name);
}

/** Schedules all errands at once, as activities of another queue. */
export async function runErrands(taskQueue: string, errands: Errand[]): Promise<void> {
  const underWay = errands.map(({ name, priority }) => {
    const options = { taskQueue, startToCloseTimeout: '1 minute', priority } as const;
    return proxyActivities<TurnActivities>(options).takeTurn(name);
  });
  await Promise.all(underWay);
}

/** Starts all errands at once, as children on another queue. */
export async function sendVisitors(taskQueue: string, errands: Errand[]): Promise<void> {
  const underWay = errands.map(({ name, priority }) => {
    const workflowId = `${workflowInfo().workflowId} ${name}`;
    return executeChild(visitOnce, { workflowId, taskQueue, args: [name], priority });
  });
  await Promise.all(underWay);
}
