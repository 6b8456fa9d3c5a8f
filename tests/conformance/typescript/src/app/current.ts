// What the workers of today run.
import { proxyActivities, patched, sleep, uuid4, condition, setHandler } from '@temporalio/workflow';
import type * as activities from './activities';
import { goOn, ticket } from './messages';

export * from './activityWorkflows';
export * from './childWorkflows';
export * from './messageWorkflows';
export * from './turns';
export * from './updateWorkflows';

const { greet } = proxyActivities<typeof activities>({ startToCloseTimeout: '1 minute' });

export async function greeting(name: string): Promise<string> {
  return `Hello, ${name}!`;
}

export async function journey(): Promise<string> {
  const takesNewRoad = patched('new-road');
  const number = uuid4();
  let mayGoOn = false;
  setHandler(ticket, () => number);
  setHandler(goOn, () => void (mayGoOn = true));
  await condition(() => mayGoOn);
  if (takesNewRoad) return `new road ${await greet('traveller')}`;
  await sleep(10);
  return `old road ${number}`;
}
