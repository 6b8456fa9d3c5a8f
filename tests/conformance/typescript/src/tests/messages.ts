// Signals and queries.
import assert from 'node:assert/strict';
import { QueryNotRegisteredError, WorkflowNotFoundError } from '@temporalio/client';
import { inbox } from '../app/messageWorkflows';
import { close, count, deliver, letter } from '../app/messages';
import { eventNames, failureOf, scenario } from './support';

const letters = Array.from({ length: 10 }, (_, number) => `letter ${number}`);

scenario('signals arrive once each and in order', async (stage) => {
  await stage.withWorker(async () => {
    const handle = await stage.start(inbox);
    for (const text of letters) await handle.signal(deliver, text);
    await handle.signal(close);
    assert.deepEqual(await handle.result(), letters);
    const signals = (await eventNames(handle)).filter((name) => name === 'WORKFLOW_EXECUTION_SIGNALED');
    assert.equal(signals.length, letters.length + 1);
  });
});

scenario('signal-with-start delivers to a new and to a running workflow', async (stage) => {
  const send = (text: string) =>
    stage.client.workflow.signalWithStart(inbox, {
      workflowId: stage.name,
      taskQueue: stage.name,
      signal: deliver,
      signalArgs: [text],
    });
  const first = await send('one');
  const second = await send('two');
  assert.equal(first.signaledRunId, second.signaledRunId);
  await stage.withWorker(async () => {
    await first.signal(close);
    assert.deepEqual(await first.result(), ['one', 'two']);
  });
});

scenario('signalling a closed workflow is refused as not found', async (stage) => {
  const handle = await stage.start(inbox);
  await handle.terminate();
  await failureOf(handle.signal(deliver, 'too late'), WorkflowNotFoundError);
});

scenario('a running and a completed workflow answer queries', async (stage) => {
  await stage.withWorker(async () => {
    const handle = await stage.start(inbox);
    await handle.signal(deliver, 'one');
    assert.equal(await handle.query(count), 1);
    await handle.signal(close);
    await handle.result();
    assert.equal(await handle.query(letter, 0), 'one');
  });
});

scenario('a query that fails or is unknown tells the caller why', async (stage) => {
  await stage.withWorker(async () => {
    const handle = await stage.start(inbox);
    const failure = await failureOf(handle.query(letter, 7), QueryNotRegisteredError);
    assert.match(failure.message, /there is no letter 7/);
    const refusal = await failureOf(handle.query('weather'), QueryNotRegisteredError);
    assert.match(refusal.message, /weather/);
    await handle.terminate();
  });
});
