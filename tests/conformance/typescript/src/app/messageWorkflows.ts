// Workflows that wait for signals, answer queries, sleep and end in different ways.
import { ApplicationFailure, CancelledFailure, condition, setHandler, sleep } from '@temporalio/workflow';
import { close, count, deliver, letter, wake } from './messages';

/** Collects letters until it is told to close; tells how many it has when asked. */
export async function inbox(): Promise<string[]> {
  const letters: string[] = [];
  let isClosed = false;
  setHandler(deliver, (text) => void letters.push(text));
  setHandler(close, () => void (isClosed = true));
  setHandler(count, () => letters.length);
  setHandler(letter, (index) => {
    if (index >= letters.length) throw new Error(`there is no letter ${index}`);
    return letters[index];
  });
  await condition(() => isClosed);
  return letters;
}

export async function nap(milliseconds: number): Promise<string> {
  await sleep(milliseconds);
  return 'awake';
}

/** Races a day-long timer against a signal; the loser is cancelled. */
export async function sleepUntilWoken(): Promise<string> {
  let isWoken = false;
  setHandler(wake, () => void (isWoken = true));
  return (await condition(() => isWoken, '1 day')) ? 'woken' : 'slept in';
}

export async function refuse(order: string): Promise<void> {
  const message = `order ${order} is out of stock`;
  throw ApplicationFailure.nonRetryable(message, 'OutOfStock', { order, left: 0 });
}

export async function cleanUpWhenCancelled(): Promise<string> {
  try {
    await sleep('1 day');
  } catch (error) {
    if (error instanceof CancelledFailure) return 'cleaned up';
    throw error;
  }
  return 'slept in';
}
