// What a second start with the same workflow id does.
import assert from 'node:assert/strict';
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import { inbox } from '../app/messageWorkflows';
import { failureOf, scenario } from './support';

scenario('a running workflow id cannot be started again', async (stage) => {
  const handle = await stage.start(inbox);
  const refusal = await failureOf(stage.start(inbox), WorkflowExecutionAlreadyStartedError);
  assert.equal(refusal.workflowId, handle.workflowId);
  await handle.terminate();
});

scenario('a closed workflow id may be used again by default', async (stage) => {
  const first = await stage.start(inbox);
  await first.terminate();
  const second = await stage.start(inbox);
  assert.notEqual(first.firstExecutionRunId, second.firstExecutionRunId);
  await second.terminate();
});

scenario('reject-duplicate refuses the id of a closed workflow', async (stage) => {
  await (await stage.start(inbox)).terminate();
  const second = stage.start(inbox, { workflowIdReusePolicy: 'REJECT_DUPLICATE' });
  await failureOf(second, WorkflowExecutionAlreadyStartedError);
});

scenario('use-existing joins the running workflow', async (stage) => {
  const first = await stage.start(inbox);
  const second = await stage.start(inbox, { workflowIdConflictPolicy: 'USE_EXISTING' });
  assert.equal(first.firstExecutionRunId, second.firstExecutionRunId);
  await first.terminate();
});

scenario('terminate-existing replaces the running workflow', async (stage) => {
  const first = await stage.start(inbox);
  const second = await stage.start(inbox, { workflowIdConflictPolicy: 'TERMINATE_EXISTING' });
  const oldRun = stage.client.workflow.getHandle(stage.name, first.firstExecutionRunId);
  assert.equal((await oldRun.describe()).status.name, 'TERMINATED');
  assert.equal((await second.describe()).status.name, 'RUNNING');
  await second.terminate();
});
