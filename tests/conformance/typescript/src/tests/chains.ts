// Workflows of several runs.
import assert from 'node:assert/strict';
import { runRelay } from '../app/childWorkflows';
import { events, scenario } from './support';

scenario('three runs that continue as new give one result', async (stage) => {
  await stage.withWorker(async () => {
    const handle = await stage.start(runRelay, { args: [3], memo: { colour: 'blue' } });
    const runIds = await handle.result();
    assert.equal(runIds.length, 3);
    assert.equal(runIds[0], handle.firstExecutionRunId);

    const runs = runIds.map((runId) => stage.client.workflow.getHandle(stage.name, runId));
    for (const index of [1, 2]) {
      assert.equal((await runs[index - 1].describe()).status.name, 'CONTINUED_AS_NEW');
      const started = (await events(runs[index]))[0].workflowExecutionStartedEventAttributes;
      assert.equal(started?.continuedExecutionRunId, runIds[index - 1]);
      assert.equal(started?.firstExecutionRunId, runIds[0]);
    }
    const last = await runs[2].describe();
    assert.equal(last.status.name, 'COMPLETED');
    assert.deepEqual(last.memo, { colour: 'blue' });
  });
});
