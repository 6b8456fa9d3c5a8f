// Workflows that signal and cancel other workflows.
import assert from 'node:assert/strict';
import { WorkflowFailedError } from '@temporalio/client';
import { CancelledFailure } from '@temporalio/common';
import { cancelNeighbour, writeToChild, writeToNeighbour } from '../app/childWorkflows';
import { inbox } from '../app/messageWorkflows';
import { close } from '../app/messages';
import { eventNames, failureOf, isA, replay, scenario } from './support';

const letters = ['one', 'two', 'three'];

scenario('a parent signals its child', async (stage) => {
  const handle = await stage.start(writeToChild, { args: [letters] });
  assert.deepEqual(await stage.withWorker(() => handle.result()), letters);
  await replay(handle);
});

scenario('a workflow signals its neighbour', async (stage) => {
  await stage.withWorker(async () => {
    const neighbour = await stage.start(inbox, { workflowId: `${stage.name}-neighbour` });
    const handle = await stage.start(writeToNeighbour, { args: [neighbour.workflowId, letters] });
    await handle.result();
    await neighbour.signal(close);
    assert.deepEqual(await neighbour.result(), letters);
    await replay(handle);
  });
});

scenario('a signal to a workflow that is not there fails', async (stage) => {
  const handle = await stage.start(writeToNeighbour, { args: ['nobody', letters] });
  const { cause } = await failureOf(
    stage.withWorker(() => handle.result()),
    WorkflowFailedError,
  );
  assert.match(String(cause), /not found/);
  assert.ok((await eventNames(handle)).includes('SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED'));
});

scenario('a workflow cancels its neighbour', async (stage) => {
  await stage.withWorker(async () => {
    const neighbour = await stage.start(inbox, { workflowId: `${stage.name}-neighbour` });
    const handle = await stage.start(cancelNeighbour, { args: [neighbour.workflowId] });
    await handle.result();
    const { cause } = await failureOf(neighbour.result(), WorkflowFailedError);
    isA(cause, CancelledFailure);
    assert.equal((await neighbour.describe()).status.name, 'CANCELLED');
    await replay(handle);
  });
});
