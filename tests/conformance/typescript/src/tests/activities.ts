// Activities: results, retries, failures and the priority they run with.
import assert from 'node:assert/strict';
import { WorkflowFailedError } from '@temporalio/client';
import { ActivityFailure, ApplicationFailure } from '@temporalio/common';
import * as activities from '../app/activities';
import {
  completeElsewhere,
  hello,
  helloLocally,
  pay,
  readPriorities,
  retryUntil,
} from '../app/activityWorkflows';
import { eventNames, events, failureOf, isA, nameOf, scenario, Stage } from './support';

const helloHistory = [
  'WORKFLOW_EXECUTION_STARTED',
  'WORKFLOW_TASK_SCHEDULED',
  'WORKFLOW_TASK_STARTED',
  'WORKFLOW_TASK_COMPLETED',
  'ACTIVITY_TASK_SCHEDULED',
  'ACTIVITY_TASK_STARTED',
  'ACTIVITY_TASK_COMPLETED',
  'WORKFLOW_TASK_SCHEDULED',
  'WORKFLOW_TASK_STARTED',
  'WORKFLOW_TASK_COMPLETED',
  'WORKFLOW_EXECUTION_COMPLETED',
];

scenario('hello with an activity leaves exactly the expected history', async (stage) => {
  const run = async () => {
    const handle = await stage.start(hello, { args: ['Ada'] });
    assert.equal(await handle.result(), 'Hello, Ada!');
    assert.deepEqual(await eventNames(handle), helloHistory);
  };
  await stage.withWorker(run, { activities });
});

scenario('a failing activity is retried until it succeeds', async (stage) => {
  const run = async () => {
    const handle = await stage.start(retryUntil, { args: [3] });
    assert.equal(await handle.result(), 3);
    return await events(handle);
  };
  const history = await stage.withWorker(run, { activities });

  // Attempts that are retried leave no events of their own: only the last one is written.
  assert.deepEqual(history.map(nameOf), helloHistory);
  const started = history[5].activityTaskStartedEventAttributes;
  assert.equal(started?.attempt, 3);
  assert.equal(started?.lastFailure?.message, 'attempt 2 is too early');
  assert.equal(started?.lastFailure?.applicationFailureInfo?.type, 'TooEarly');
});

async function payAndFail(stage: Stage, charge: activities.Charge) {
  const run = async () => await (await stage.start(pay, { args: [charge] })).result();
  const { cause } = await failureOf(stage.withWorker(run, { activities }), WorkflowFailedError);
  isA(cause, ActivityFailure);
  isA(cause.cause, ApplicationFailure);
  return { failure: cause, cause: cause.cause };
}

scenario('an activity that exhausts its attempts fails with its last error', async (stage) => {
  const { failure, cause } = await payAndFail(stage, { amount: 40, errorType: 'Declined' });
  assert.equal(failure.activityType, 'decline');
  assert.equal(failure.retryState, 'MAXIMUM_ATTEMPTS_REACHED');
  assert.equal(cause.type, 'Declined');
  assert.equal(cause.message, 'card declined on attempt 3');
  assert.deepEqual(cause.details, [{ amount: 40 }]);
});

scenario('an error type listed as non-retryable is not retried', async (stage) => {
  const { failure, cause } = await payAndFail(stage, { amount: 40, errorType: 'StolenCard' });
  assert.equal(failure.retryState, 'NON_RETRYABLE_FAILURE');
  assert.equal(cause.message, 'card declined on attempt 1');
});

scenario('an error that says it is non-retryable is not retried', async (stage) => {
  const { cause } = await payAndFail(stage, { amount: 40, errorType: 'Declined', nonRetryable: true });
  assert.equal(cause.nonRetryable, true);
  assert.equal(cause.message, 'card declined on attempt 1');
});

scenario('an activity can be completed by its task token', async (stage) => {
  const watched = activities.watched();
  const run = async () => {
    const handle = await stage.start(completeElsewhere);
    const { taskToken } = await watched.started;
    await stage.client.activity.heartbeat(taskToken, 'nearly there');
    await stage.client.activity.complete(taskToken, 'done by token');
    assert.equal(await handle.result(), 'done by token');
  };
  await stage.withWorker(run, { activities: watched.activities });
});

scenario('an activity can be completed by its id', async (stage) => {
  const watched = activities.watched();
  const run = async () => {
    const handle = await stage.start(completeElsewhere);
    const { activityId } = await watched.started;
    await stage.client.activity.complete({ workflowId: handle.workflowId, activityId }, 'done by id');
    assert.equal(await handle.result(), 'done by id');
  };
  await stage.withWorker(run, { activities: watched.activities });
});

scenario('a local activity leaves a marker instead of activity events', async (stage) => {
  const run = async () => {
    const handle = await stage.start(helloLocally, { args: ['Ada'] });
    assert.equal(await handle.result(), 'Hello, Ada!');
    assert.deepEqual(await eventNames(handle), [
      'WORKFLOW_EXECUTION_STARTED',
      'WORKFLOW_TASK_SCHEDULED',
      'WORKFLOW_TASK_STARTED',
      'WORKFLOW_TASK_COMPLETED',
      'MARKER_RECORDED',
      'WORKFLOW_EXECUTION_COMPLETED',
    ]);
  };
  await stage.withWorker(run, { activities });
});

scenario('an activity inherits each field of its priority that it does not set', async (stage) => {
  const priority = { priorityKey: 2, fairnessKey: 'acme', fairnessWeight: 4 };
  const run = async () => await (await stage.start(readPriorities, { priority })).result();
  assert.deepEqual(await stage.withWorker(run, { activities }), [
    { level: 2, tenant: 'acme', weight: 4 },
    { level: 1, tenant: 'bolt', weight: 2.5 },
    { level: 1, tenant: 'acme', weight: 4 },
    { level: 2, tenant: 'bolt', weight: 4 },
    { level: 2, tenant: 'acme', weight: 2.5 },
  ]);
});
