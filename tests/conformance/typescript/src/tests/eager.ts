// First tasks that come with the answer to the start, for a worker of the same process.
import assert from 'node:assert/strict';
import { WorkflowHandle } from '@temporalio/client';
import { greeting } from '../app/current';
import { inbox } from '../app/messageWorkflows';
import { close, deliver } from '../app/messages';
import { events, replay, scenario } from './support';

async function wasEager(handle: WorkflowHandle): Promise<boolean> {
  const [first] = await events(handle);
  return first.workflowExecutionStartedEventAttributes?.eagerExecutionAccepted ?? false;
}

scenario('a workflow that is started eagerly runs', async (stage) => {
  await stage.withWorker(async () => {
    const handle = await stage.startEagerly(greeting, { args: ['Ada'] });
    assert.equal(await handle.result(), 'Hello, Ada!');
    assert.ok(await wasEager(handle));
  });
});

scenario('an eager start without a worker waits for one', async (stage) => {
  const handle = await stage.startEagerly(greeting, { args: ['Ada'] });
  assert.ok(!(await wasEager(handle)));
  await stage.withWorker(async () => assert.equal(await handle.result(), 'Hello, Ada!'));
});

scenario('the history of an eager workflow replays', async (stage) => {
  await stage.withWorker(async () => {
    const handle = await stage.startEagerly(inbox);
    await handle.signal(deliver, 'a letter');
    await handle.signal(close);
    assert.deepEqual(await handle.result(), ['a letter']);
    assert.ok(await wasEager(handle));
    await replay(handle);
  });
});
