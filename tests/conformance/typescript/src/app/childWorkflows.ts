// Workflows that start children, live through several runs and write to their neighbours.
import {
  condition,
  continueAsNew,
  executeChild,
  getExternalWorkflowHandle,
  ParentClosePolicy,
  setHandler,
  startChild,
  workflowInfo,
} from '@temporalio/workflow';
import { greeting } from './current';
import { inbox, refuse } from './messageWorkflows';
import { close, deliver, leave } from './messages';

function childId(name: string): string {
  return `${workflowInfo().workflowId}-${name}`;
}

export async function delegateGreeting(name: string): Promise<string> {
  return await executeChild(greeting, { workflowId: childId('greeting'), args: [name] });
}

export async function delegateOrder(order: string): Promise<void> {
  await executeChild(refuse, { workflowId: childId('order'), args: [order] });
}

/** Passes its own cancellation on to the child and waits for its answer. */
export async function waitForInbox(): Promise<string[]> {
  return await executeChild(inbox, { workflowId: childId('inbox') });
}

/** Starts children of two close policies and leaves when it is told to. */
export async function leaveChildren(): Promise<void> {
  let mayLeave = false;
  setHandler(leave, () => void (mayLeave = true));
  for (const policy of ['TERMINATE', 'ABANDON'] as const)
    await startChild(inbox, {
      workflowId: childId(policy),
      parentClosePolicy: ParentClosePolicy[policy],
    });
  await condition(() => mayLeave);
}

/** Hands over to a new run until nobody is left; the last one tells who ran. */
export async function runRelay(left: number, runIds: string[] = []): Promise<string[]> {
  const ran = [...runIds, workflowInfo().runId];
  if (left > 1) await continueAsNew<typeof runRelay>(left - 1, ran);
  return ran;
}

export async function delegateRelay(runners: number): Promise<string[]> {
  return await executeChild(runRelay, { workflowId: childId('relay'), args: [runners] });
}

export async function writeToChild(letters: string[]): Promise<string[]> {
  const child = await startChild(inbox, { workflowId: childId('inbox') });
  for (const letter of letters) await child.signal(deliver, letter);
  await child.signal(close);
  return await child.result();
}

export async function writeToNeighbour(neighbourId: string, letters: string[]): Promise<void> {
  const neighbour = getExternalWorkflowHandle(neighbourId);
  for (const letter of letters) await neighbour.signal(deliver, letter);
}

export async function cancelNeighbour(neighbourId: string): Promise<void> {
  await getExternalWorkflowHandle(neighbourId).cancel();
}
