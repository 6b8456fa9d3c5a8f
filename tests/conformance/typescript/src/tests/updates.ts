// Updates of running and closed workflows.
import assert from 'node:assert/strict';
import {
  WorkflowHandle,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
  WorkflowUpdateStage,
} from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import * as activities from '../app/activities';
import { approve, close, closeAtOnce, deposit, entries, move } from '../app/messages';
import { thank, transfer, whoAsks, withdraw } from '../app/messages';
import { account, travellingAccount } from '../app/updateWorkflows';
import { eventNames, failureOf, isA, replay, scenario, untilEvent } from './support';

const newTask = ['WORKFLOW_TASK_SCHEDULED', 'WORKFLOW_TASK_STARTED', 'WORKFLOW_TASK_COMPLETED'];
const accepted = 'WORKFLOW_EXECUTION_UPDATE_ACCEPTED';
const completed = 'WORKFLOW_EXECUTION_UPDATE_COMPLETED';

async function refusal(update: Promise<unknown>): Promise<ApplicationFailure> {
  const { cause } = await failureOf(update, WorkflowUpdateFailedError);
  isA(cause, ApplicationFailure);
  return cause;
}

async function leftUnfinished(update: Promise<unknown>): Promise<void> {
  assert.equal((await refusal(update)).type, 'AcceptedUpdateCompletedWorkflow');
}

async function startTransfer(handle: WorkflowHandle, to: string) {
  const waitForStage = WorkflowUpdateStage.ACCEPTED;
  return await handle.startUpdate(transfer, { args: [to], updateId: to, waitForStage });
}

async function closes(handle: WorkflowHandle<typeof account>, ...journal: string[]): Promise<void> {
  await handle.signal(close);
  assert.deepEqual(await handle.result(), journal);
  await replay(handle);
}

scenario('an update changes the workflow and returns a value', async (stage) => {
  await stage.withWorker(async () => {
    const handle = await stage.start(account);
    assert.equal(await handle.executeUpdate(deposit, { args: [5] }), 5);
    const before = await eventNames(handle);
    assert.equal(await handle.executeUpdate(deposit, { args: [7] }), 12);
    assert.deepEqual(await eventNames(handle), [...before, ...newTask, accepted, completed]);
    await closes(handle, 'deposit 5', 'deposit 7');
  });
});

scenario('a refused update leaves no trace and the workflow goes on', async (stage) => {
  await stage.withWorker(async () => {
    const handle = await stage.start(account);
    await handle.executeUpdate(deposit, { args: [5] });
    const before = await eventNames(handle);
    for (const amount of [-1, -2, -3]) {
      const failure = await refusal(handle.executeUpdate(deposit, { args: [amount] }));
      assert.equal(failure.message, `${amount} is not an amount`);
      assert.deepEqual(await eventNames(handle), before);
    }
    // The refused tasks never were: their ids belong to the next one.
    assert.equal(await handle.executeUpdate(deposit, { args: [7] }), 12);
    assert.deepEqual(await eventNames(handle), [...before, ...newTask, accepted, completed]);
    await closes(handle, 'deposit 5', 'deposit 7');
  });
});

scenario('an unknown update is refused by name', async (stage) => {
  await stage.withWorker(async () => {
    const handle = await stage.start(account);
    assert.match((await refusal(handle.executeUpdate('weather'))).message, /weather/);
    await closes(handle);
  });
});

scenario('an update whose handler fails is a failed update of a healthy workflow', async (stage) => {
  await stage.withWorker(async () => {
    const handle = await stage.start(account);
    await handle.executeUpdate(deposit, { args: [5] });
    const failure = await refusal(handle.executeUpdate(withdraw, { args: [6] }));
    assert.equal(failure.type, 'Overdrawn');
    assert.deepEqual(failure.details, [{ balance: 5 }]);
    assert.equal(await handle.executeUpdate(withdraw, { args: [5] }), 0);
    await closes(handle, 'deposit 5');
  });
});

scenario('a handler waits for activities and timers while signals arrive', async (stage) => {
  const run = async () => {
    const handle = await stage.start(account);
    const thanks = handle.executeUpdate(thank, { args: ['Ada'] });
    await handle.signal(approve, 'Bob');
    assert.deepEqual(await thanks, ['Hello, Ada!', 'Hello, dear Ada!', 'good night']);
    assert.equal(await handle.executeUpdate(transfer, { args: ['Bob'] }), 'Bob has the money');
    await closes(handle, 'transfer to Bob', 'transferred to Bob');
  };
  await stage.withWorker(run, { activities });
});

scenario('handlers overlap and know which update they serve', async (stage) => {
  await stage.withWorker(async () => {
    const handle = await stage.start(account);
    const ask = (updateId: string) => handle.executeUpdate(whoAsks, { updateId });
    assert.deepEqual(await Promise.all([ask('a'), ask('b')]), [
      ['whoAsks', 'a'],
      ['whoAsks', 'b'],
    ]);
    await closes(handle);
  });
});

scenario('an update id counts once, also after the workflow has closed', async (stage) => {
  await stage.withWorker(async () => {
    const handle = await stage.start(account);
    const send = () => handle.executeUpdate(deposit, { args: [5], updateId: 'once' });
    assert.equal(await send(), 5);
    assert.equal(await send(), 5);
    await closes(handle, 'deposit 5');
    assert.equal(await send(), 5);
    assert.equal(await handle.getUpdateHandle('once').result(), 5);
  });
});

scenario('unknown updates and updates of a closed workflow are refused as not found', async (stage) => {
  await stage.withWorker(async () => {
    const handle = await stage.start(account);
    const unknown = await failureOf(handle.getUpdateHandle('nobody').result(), WorkflowNotFoundError);
    assert.match(unknown.message, /update "nobody" not found/);
    await closes(handle);
    await failureOf(handle.executeUpdate(deposit, { args: [5] }), WorkflowNotFoundError);
  });
});

scenario('an update may close the workflow in its own task', async (stage) => {
  await stage.withWorker(async () => {
    const handle = await stage.start(account);
    assert.equal(await handle.executeUpdate(closeAtOnce), 'closed with 0');
    assert.deepEqual(await handle.result(), []);
    const end = [accepted, completed, 'WORKFLOW_EXECUTION_COMPLETED'];
    assert.deepEqual((await eventNames(handle)).slice(-3), end);
    await replay(handle);
  });
});

scenario('an accepted update fails when the workflow completes before it', async (stage) => {
  await stage.withWorker(async () => {
    const handle = await stage.start(account);
    const update = await startTransfer(handle, 'Ada');
    await closes(handle, 'transfer to Ada');
    await leftUnfinished(update.result());
    await leftUnfinished(handle.getUpdateHandle('Ada').result());
  });
});

scenario('a patient workflow lets its updates finish', async (stage) => {
  await stage.withWorker(async () => {
    const handle = await stage.start(account, { args: [true] });
    const update = await startTransfer(handle, 'Ada');
    await handle.signal(close);
    assert.deepEqual(await handle.query(entries), ['transfer to Ada']);
    await handle.signal(approve, 'Ada');
    assert.equal(await update.result(), 'Ada has the money');
    assert.deepEqual(await handle.result(), ['transfer to Ada', 'transferred to Ada']);
    await replay(handle);
  });
});

scenario('a call may give up before a worker comes and ask again', async (stage) => {
  const handle = await stage.start(account);
  const send = () => handle.executeUpdate(deposit, { args: [5], updateId: 'five' });
  const hurry = stage.client.withDeadline(Date.now() + 1000, send);
  await failureOf(hurry, WorkflowUpdateRPCTimeoutOrCancelledError);
  await stage.withWorker(async () => {
    assert.equal(await send(), 5);
    await closes(handle, 'deposit 5');
  });
});

scenario('a handler goes on under a new worker', async (stage) => {
  const handle = await stage.start(account);
  const update = await stage.withWorker(async () => {
    await handle.executeUpdate(deposit, { args: [5] });
    await refusal(handle.executeUpdate(deposit, { args: [-1] }));
    return await startTransfer(handle, 'Ada');
  });
  await stage.withWorker(async () => {
    await handle.signal(approve, 'Ada');
    assert.equal(await update.result(), 'Ada has the money');
    assert.equal(await handle.executeUpdate(deposit, { args: [7] }), 12);
    await closes(handle, 'deposit 5', 'transfer to Ada', 'transferred to Ada', 'deposit 7');
  });
});

scenario('updates find the newest run of a chain and do not follow it there', async (stage) => {
  await stage.withWorker(async () => {
    const { workflowId, firstExecutionRunId } = await stage.start(travellingAccount, { args: [0] });
    const first = stage.client.workflow.getHandle(workflowId, firstExecutionRunId);
    const chain = stage.client.workflow.getHandle(workflowId, undefined, { firstExecutionRunId });
    assert.equal(await chain.executeUpdate(deposit, { args: [5] }), 5);
    const update = await startTransfer(first, 'Ada');
    await first.signal(move);
    await untilEvent(first, 'WORKFLOW_EXECUTION_CONTINUED_AS_NEW');
    await leftUnfinished(update.result());
    assert.equal(await chain.executeUpdate(deposit, { args: [7] }), 12);
    await failureOf(first.executeUpdate(deposit, { args: [9] }), WorkflowNotFoundError);
    await replay(first);
    await chain.terminate();
  });
});
