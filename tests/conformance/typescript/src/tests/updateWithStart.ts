// Update-with-start: one call that finds or makes the workflow and has it answer.
import assert from 'node:assert/strict';
import { WithStartWorkflowOperation, WorkflowUpdateFailedError } from '@temporalio/client';
import { WorkflowExecutionAlreadyStartedError, WorkflowIdConflictPolicy } from '@temporalio/common';
import { close, deposit } from '../app/messages';
import { account } from '../app/updateWorkflows';
import { eventNames, failureOf, replay, scenario, Stage } from './support';

function openingOf(stage: Stage, workflowIdConflictPolicy: WorkflowIdConflictPolicy) {
  const options = { workflowId: stage.name, taskQueue: stage.name, workflowIdConflictPolicy };
  return new WithStartWorkflowOperation(account, options);
}

/** Deposits into the stage's account, which is opened when there is none; tells the balance and the run. */
async function depositInto(
  stage: Stage,
  amount: number,
  { policy = 'FAIL' as WorkflowIdConflictPolicy, updateId = undefined as string | undefined } = {},
) {
  const startWorkflowOperation = openingOf(stage, policy);
  const options = { args: [amount] as [number], updateId, startWorkflowOperation };
  const balance = await stage.client.workflow.executeUpdateWithStart(deposit, options);
  const handle = await startWorkflowOperation.workflowHandle();
  return { balance, runId: (await handle.describe()).runId };
}

scenario('an update starts the workflow and rides on its first task', async (stage) => {
  await stage.withWorker(async () => {
    assert.equal((await depositInto(stage, 5)).balance, 5);
    const handle = stage.client.workflow.getHandle<typeof account>(stage.name);
    assert.deepEqual(await eventNames(handle), [
      'WORKFLOW_EXECUTION_STARTED',
      'WORKFLOW_TASK_SCHEDULED',
      'WORKFLOW_TASK_STARTED',
      'WORKFLOW_TASK_COMPLETED',
      'WORKFLOW_EXECUTION_UPDATE_ACCEPTED',
      'WORKFLOW_EXECUTION_UPDATE_COMPLETED',
    ]);
    await handle.signal(close);
    assert.deepEqual(await handle.result(), ['deposit 5']);
    await replay(handle);
  });
});

scenario('an update uses the workflow that runs when it may', async (stage) => {
  await stage.withWorker(async () => {
    const first = await depositInto(stage, 5, { policy: 'USE_EXISTING' });
    const second = await depositInto(stage, 7, { policy: 'USE_EXISTING' });
    assert.deepEqual(second, { balance: 12, runId: first.runId });
    await stage.client.workflow.getHandle(stage.name).terminate();
  });
});

scenario('a workflow that runs already is a conflict and hears nothing', async (stage) => {
  await stage.withWorker(async () => {
    const handle = await stage.start(account);
    await handle.executeUpdate(deposit, { args: [5] });
    const before = await eventNames(handle);
    await failureOf(depositInto(stage, 7), WorkflowExecutionAlreadyStartedError);
    assert.deepEqual(await eventNames(handle), before);
    await handle.terminate();
  });
});

scenario('an update id sent twice counts once, also after the workflow has closed', async (stage) => {
  await stage.withWorker(async () => {
    const first = await depositInto(stage, 5, { updateId: 'once' });
    assert.deepEqual(await depositInto(stage, 5, { updateId: 'once' }), first);
    const handle = stage.client.workflow.getHandle<typeof account>(stage.name);
    await handle.signal(close);
    assert.deepEqual(await handle.result(), ['deposit 5']);
    assert.deepEqual(await depositInto(stage, 5, { updateId: 'once' }), first);
    // Another update is new work and gets a new run.
    const other = await depositInto(stage, 7);
    assert.equal(other.balance, 7);
    assert.notEqual(other.runId, first.runId);
    await handle.terminate();
  });
});

scenario('a refused update leaves the workflow that it started', async (stage) => {
  await stage.withWorker(async () => {
    await failureOf(depositInto(stage, -5), WorkflowUpdateFailedError);
    const handle = stage.client.workflow.getHandle<typeof account>(stage.name);
    assert.equal(await handle.executeUpdate(deposit, { args: [5] }), 5);
    await handle.signal(close);
    assert.deepEqual(await handle.result(), ['deposit 5']);
    await replay(handle);
  });
});
