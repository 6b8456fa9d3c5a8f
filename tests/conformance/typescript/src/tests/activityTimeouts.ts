// Activities that take too long, that heartbeat, and that are cancelled while they run.
import assert from 'node:assert/strict';
import { WorkflowFailedError } from '@temporalio/client';
import { ActivityFailure, CancelledFailure, TimeoutFailure } from '@temporalio/common';
import * as activities from '../app/activities';
import { cancelActivity, resumeByHeartbeat, Timeout, timeOut } from '../app/activityWorkflows';
import { eventNames, failureOf, isA, scenario, Stage } from './support';

scenario('heartbeat details survive a retry', async (stage) => {
  const run = async () => await (await stage.start(resumeByHeartbeat)).result();
  assert.equal(await stage.withWorker(run, { activities }), 3);
});

async function timeoutTypeOf(stage: Stage, timeout: Timeout): Promise<string | undefined> {
  const run = async () => await (await stage.start(timeOut, { args: [timeout] })).result();
  const { cause } = await failureOf(stage.withWorker(run, { activities }), WorkflowFailedError);
  isA(cause, ActivityFailure);
  isA(cause.cause, TimeoutFailure);
  return cause.cause.timeoutType;
}

scenario('a silent activity meets its heartbeat timeout', async (stage) => {
  assert.equal(await timeoutTypeOf(stage, 'heartbeat'), 'HEARTBEAT');
});

scenario('a slow activity meets its start-to-close timeout', async (stage) => {
  assert.equal(await timeoutTypeOf(stage, 'startToClose'), 'START_TO_CLOSE');
});

scenario('an activity nobody polls for meets its schedule-to-start timeout', async (stage) => {
  assert.equal(await timeoutTypeOf(stage, 'scheduleToStart'), 'SCHEDULE_TO_START');
});

scenario('cancelling a workflow reaches its heartbeating activity', async (stage) => {
  const watched = activities.watched();
  const run = async () => {
    const handle = await stage.start(cancelActivity);
    await watched.started;
    await handle.cancel();
    await watched.cancelled;
    const { cause } = await failureOf(handle.result(), WorkflowFailedError);
    isA(cause, CancelledFailure);
    return await eventNames(handle);
  };
  const history = await stage.withWorker(run, { activities: watched.activities });
  assert.ok(history.includes('ACTIVITY_TASK_CANCEL_REQUESTED'));
  assert.ok(history.includes('ACTIVITY_TASK_CANCELED'));
  assert.equal(history.at(-1), 'WORKFLOW_EXECUTION_CANCELED');
});
