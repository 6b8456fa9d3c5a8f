// How workflows end: failed, cancelled, terminated or timed out; and timers on the way.
import assert from 'node:assert/strict';
import { WorkflowFailedError, WorkflowNotFoundError } from '@temporalio/client';
import { ApplicationFailure, CancelledFailure, TerminatedFailure, TimeoutFailure } from '@temporalio/common';
import { greeting } from '../app/current';
import { cleanUpWhenCancelled, nap, refuse, sleepUntilWoken } from '../app/messageWorkflows';
import { wake } from '../app/messages';
import { eventNames, failureOf, isA, scenario, untilEvent } from './support';

const hourMs = 3_600_000;

scenario('a timer fires', async (stage) => {
  await stage.withWorker(async () => {
    const handle = await stage.start(nap, { args: [200] });
    assert.equal(await handle.result(), 'awake');
    assert.deepEqual(await eventNames(handle), [
      'WORKFLOW_EXECUTION_STARTED',
      'WORKFLOW_TASK_SCHEDULED',
      'WORKFLOW_TASK_STARTED',
      'WORKFLOW_TASK_COMPLETED',
      'TIMER_STARTED',
      'TIMER_FIRED',
      'WORKFLOW_TASK_SCHEDULED',
      'WORKFLOW_TASK_STARTED',
      'WORKFLOW_TASK_COMPLETED',
      'WORKFLOW_EXECUTION_COMPLETED',
    ]);
  });
});

scenario('a timer that lost the race is cancelled', async (stage) => {
  await stage.withWorker(async () => {
    const handle = await stage.start(sleepUntilWoken);
    await untilEvent(handle, 'TIMER_STARTED');
    await handle.signal(wake);
    assert.equal(await handle.result(), 'woken');
    const history = await eventNames(handle);
    assert.ok(history.includes('TIMER_CANCELED'));
    assert.ok(!history.includes('TIMER_FIRED'));
  });
});

scenario('a failed workflow shows the client its type, message and details', async (stage) => {
  await stage.withWorker(async () => {
    const handle = await stage.start(refuse, { args: ['A-17'] });
    const { cause } = await failureOf(handle.result(), WorkflowFailedError);
    isA(cause, ApplicationFailure);
    assert.equal(cause.type, 'OutOfStock');
    assert.equal(cause.message, 'order A-17 is out of stock');
    assert.deepEqual(cause.details, [{ order: 'A-17', left: 0 }]);
    assert.equal((await handle.describe()).status.name, 'FAILED');
  });
});

scenario('a workflow outlives a broken deployment', async (stage) => {
  const handle = await stage.start(greeting, { args: ['Ada'] });
  await stage.withWorker(() => untilEvent(handle, 'WORKFLOW_TASK_FAILED'), { deployment: 'previous' });
  assert.equal((await handle.describe()).status.name, 'RUNNING');
  assert.equal(await stage.withWorker(() => handle.result()), 'Hello, Ada!');
  // However many times the broken task was tried, the history tells of one failure.
  const failures = (await eventNames(handle)).filter((name) => name === 'WORKFLOW_TASK_FAILED');
  assert.equal(failures.length, 1);
});

scenario('a cancelled workflow ends as cancelled', async (stage) => {
  await stage.withWorker(async () => {
    const handle = await stage.start(nap, { args: [hourMs] });
    await untilEvent(handle, 'TIMER_STARTED');
    await handle.cancel();
    const { cause } = await failureOf(handle.result(), WorkflowFailedError);
    isA(cause, CancelledFailure);
    assert.equal((await handle.describe()).status.name, 'CANCELLED');
  });
});

scenario('a workflow may answer a cancellation with a result', async (stage) => {
  await stage.withWorker(async () => {
    const handle = await stage.start(cleanUpWhenCancelled);
    await untilEvent(handle, 'TIMER_STARTED');
    await handle.cancel();
    assert.equal(await handle.result(), 'cleaned up');
  });
});

scenario('a terminated workflow ends at once and without a worker', async (stage) => {
  const handle = await stage.start(nap, { args: [hourMs] });
  await handle.terminate('spring cleaning');
  const { cause } = await failureOf(handle.result(), WorkflowFailedError);
  isA(cause, TerminatedFailure);
  assert.equal(cause.message, 'spring cleaning');
  assert.equal((await handle.describe()).status.name, 'TERMINATED');
  await failureOf(handle.terminate(), WorkflowNotFoundError);
});

scenario('a workflow that overruns its run timeout is timed out', async (stage) => {
  await stage.withWorker(async () => {
    const handle = await stage.start(nap, { args: [hourMs], workflowRunTimeout: '1 second' });
    const { cause } = await failureOf(handle.result(), WorkflowFailedError);
    isA(cause, TimeoutFailure);
    assert.equal((await handle.describe()).status.name, 'TIMED_OUT');
  });
});
