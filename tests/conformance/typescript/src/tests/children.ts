// Child workflows: how they end, what their parents learn of it, and who outlives whom.
import assert from 'node:assert/strict';
import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure, CancelledFailure, ChildWorkflowFailure } from '@temporalio/common';
import {
  delegateGreeting,
  delegateOrder,
  delegateRelay,
  leaveChildren,
  waitForInbox,
} from '../app/childWorkflows';
import { inbox } from '../app/messageWorkflows';
import { close, deliver, leave } from '../app/messages';
import { eventNames, failureOf, isA, replay, scenario, Stage, until, untilEvent } from './support';

function childOf(stage: Stage, name: string) {
  return stage.client.workflow.getHandle<typeof inbox>(`${stage.name}-${name}`);
}

scenario('a child completes and its parent gets the result', async (stage) => {
  const handle = await stage.start(delegateGreeting, { args: ['Ada'] });
  assert.equal(await stage.withWorker(() => handle.result()), 'Hello, Ada!');
  const childEvents = (await eventNames(handle)).filter((name) => name.includes('CHILD'));
  assert.deepEqual(childEvents, [
    'START_CHILD_WORKFLOW_EXECUTION_INITIATED',
    'CHILD_WORKFLOW_EXECUTION_STARTED',
    'CHILD_WORKFLOW_EXECUTION_COMPLETED',
  ]);
  await replay(handle);
});

scenario('a failed child is the cause of the failure of its parent', async (stage) => {
  const handle = await stage.start(delegateOrder, { args: ['A-17'] });
  const { cause } = await failureOf(
    stage.withWorker(() => handle.result()),
    WorkflowFailedError,
  );
  isA(cause, ChildWorkflowFailure);
  assert.equal(cause.workflowType, 'refuse');
  assert.equal(cause.execution.workflowId, `${stage.name}-order`);
  isA(cause.cause, ApplicationFailure);
  assert.equal(cause.cause.type, 'OutOfStock');
  assert.equal(cause.cause.message, 'order A-17 is out of stock');
  await replay(handle);
});

scenario('a cancelled parent passes its cancellation on to its child', async (stage) => {
  await stage.withWorker(async () => {
    const handle = await stage.start(waitForInbox);
    await untilEvent(handle, 'CHILD_WORKFLOW_EXECUTION_STARTED');
    await handle.cancel();
    const { cause } = await failureOf(handle.result(), WorkflowFailedError);
    isA(cause, CancelledFailure);
    assert.equal((await handle.describe()).status.name, 'CANCELLED');
    assert.equal((await childOf(stage, 'inbox').describe()).status.name, 'CANCELLED');
    assert.ok((await eventNames(handle)).includes('CHILD_WORKFLOW_EXECUTION_CANCELED'));
    await replay(handle);
  });
});

scenario('a parent that completes treats each child by its close policy', async (stage) => {
  await stage.withWorker(async () => {
    const handle = await stage.start(leaveChildren);
    const started = async () =>
      (await eventNames(handle)).filter((name) => name === 'CHILD_WORKFLOW_EXECUTION_STARTED');
    await until('both children run', async () => (await started()).length === 2);
    await handle.signal(leave);
    await handle.result();

    const terminated = childOf(stage, 'TERMINATE');
    await until(
      'a child is terminated',
      async () => (await terminated.describe()).status.name === 'TERMINATED',
    );
    const abandoned = childOf(stage, 'ABANDON');
    assert.equal((await abandoned.describe()).status.name, 'RUNNING');
    await abandoned.signal(deliver, 'to whom it may concern');
    await abandoned.signal(close);
    assert.deepEqual(await abandoned.result(), ['to whom it may concern']);
    await replay(handle);
  });
});

scenario('a child that continues as new is one child', async (stage) => {
  const handle = await stage.start(delegateRelay, { args: [3] });
  const runIds = await stage.withWorker(() => handle.result());
  assert.equal(new Set(runIds).size, 3);
  const childEvents = (await eventNames(handle)).filter((name) => name.startsWith('CHILD'));
  assert.deepEqual(childEvents, ['CHILD_WORKFLOW_EXECUTION_STARTED', 'CHILD_WORKFLOW_EXECUTION_COMPLETED']);
  await replay(handle);
});
