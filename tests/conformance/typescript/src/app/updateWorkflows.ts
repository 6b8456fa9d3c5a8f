// Workflows that are asked to change and that answer: updates in all their variety.
import {
  allHandlersFinished,
  ApplicationFailure,
  condition,
  continueAsNew,
  currentUpdateInfo,
  proxyActivities,
  proxyLocalActivities,
  setHandler,
  sleep,
} from '@temporalio/workflow';
import type * as activities from './activities';
import { approve, close, closeAtOnce, deposit, entries, move, thank, transfer, whoAsks, withdraw } from './messages';

const { greet } = proxyActivities<typeof activities>({ startToCloseTimeout: '1 minute' });
const { greet: greetLocally } = proxyLocalActivities<typeof activities>({ startToCloseTimeout: '1 minute' });

/**
 * Keeps a balance until it is closed, and a journal of what it was asked to do. A patient account first lets the
 * updates finish that it has begun.
 */
export async function account(isPatient = false): Promise<string[]> {
  const journal: string[] = [];
  const approved = new Set<string>();
  let balance = 0;
  let isClosed = false;

  setHandler(
    deposit,
    (amount) => {
      journal.push(`deposit ${amount}`);
      return (balance += amount);
    },
    {
      validator: (amount) => {
        if (amount <= 0) throw new Error(`${amount} is not an amount`);
      },
    },
  );
  setHandler(withdraw, (amount) => {
    if (amount > balance) throw ApplicationFailure.nonRetryable(`only ${balance} left`, 'Overdrawn', { balance });
    return (balance -= amount);
  });
  setHandler(transfer, async (to) => {
    journal.push(`transfer to ${to}`);
    await condition(() => approved.has(to));
    journal.push(`transferred to ${to}`);
    return `${to} has the money`;
  });
  setHandler(thank, async (name) => {
    const thanks = [await greet(name), await greetLocally(`dear ${name}`)];
    await sleep(10);
    return [...thanks, 'good night'];
  });
  setHandler(whoAsks, async () => {
    await sleep(10);
    return [currentUpdateInfo()?.name ?? '', currentUpdateInfo()?.id ?? ''];
  });
  setHandler(closeAtOnce, () => {
    isClosed = true;
    return `closed with ${balance}`;
  });
  setHandler(approve, (to) => void approved.add(to));
  setHandler(close, () => void (isClosed = true));
  setHandler(entries, () => journal);

  await condition(() => isClosed);
  if (isPatient) await condition(allHandlersFinished);
  return journal;
}

/** Moves its balance to a new run whenever it is told to. */
export async function travellingAccount(balance: number): Promise<void> {
  let moves = false;
  setHandler(deposit, (amount) => (balance += amount));
  setHandler(transfer, async () => {
    await condition(() => false);
    return 'never';
  });
  setHandler(move, () => void (moves = true));
  await condition(() => moves);
  await continueAsNew<typeof travellingAccount>(balance);
}
