// The previous deployment of two workflows; `current.ts` has to take over the runs it left behind.
import { condition, setHandler, sleep, uuid4 } from '@temporalio/workflow';
import { goOn, ticket } from './messages';

/** Deployed by mistake: an ordinary error fails the task, not the workflow. */
export async function greeting(_name: string): Promise<string> {
  throw new Error('nobody tested this version');
}

export async function journey(): Promise<string> {
  const number = uuid4();
  let mayGoOn = false;
  setHandler(ticket, () => number);
  setHandler(goOn, () => void (mayGoOn = true));
  await condition(() => mayGoOn);
  await sleep(10);
  return `old road ${number}`;
}
