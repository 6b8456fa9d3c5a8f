// Whose turn it is: strict levels, and inside a level each tenant's exact share.
import assert from 'node:assert/strict';
import { WorkflowHandle } from '@temporalio/client';
import { Priority } from '@temporalio/common';
import { WorkerOptions } from '@temporalio/worker';
import { turns } from '../app/activities';
import { Errand, runErrands, sendVisitors, visitOnce } from '../app/turns';
import { eventNames, scenario, Stage, until, untilEvent } from './support';

// With one slot a worker asks for its next task when it is done with the last one, so the order of its
// turns is the order in which tasks were handed out. (A worker that caches workflows would poll a queue of
// its own, too, and insist on a second slot for that.)
const oneByOne: Partial<WorkerOptions> = {
  maxCachedWorkflows: 0,
  maxConcurrentWorkflowTaskExecutions: 1,
  maxConcurrentWorkflowTaskPolls: 1,
  maxConcurrentActivityTaskExecutions: 1,
  maxConcurrentActivityTaskPolls: 1,
};

function errands(name: string, count: number, priority?: Priority): Errand[] {
  return Array.from({ length: count }, (_, index) => ({ name: `${name} ${index + 1}`, priority }));
}

// The busiest tenant's work comes first in one burst: in order of arrival the others would starve.
const tiers = [
  ...errands('premium', 15, { fairnessKey: 'premium-tier', fairnessWeight: 5 }),
  ...errands('basic', 9, { fairnessKey: 'basic-tier', fairnessWeight: 3 }),
  ...errands('free', 6, { fairnessKey: 'free-tier', fairnessWeight: 2 }),
];
const tierShares = { premium: 5, basic: 3, free: 2 };

function turnsOf(tenant: string, taken: string[]): string[] {
  return taken.filter((turn) => turn.startsWith(`${tenant} `));
}

/** Any run of consecutive turns that is as long as the sum of all shares holds exactly these. */
function assertShares(taken: string[], shares: Record<string, number>): void {
  const length = Object.values(shares).reduce((sum, share) => sum + share);
  for (let first = 0; first + length <= taken.length; first++) {
    const window = taken.slice(first, first + length);
    for (const [tenant, share] of Object.entries(shares))
      assert.equal(turnsOf(tenant, window).length, share, `${tenant} in ${window} of ${taken}`);
  }
}

/** Each tenant's turns come in the order in which they were asked for. */
function assertFirstComeFirstServed(taken: string[], asked: Errand[]): void {
  const names = asked.map(({ name }) => name);
  for (const tenant of new Set(names.map((name) => name.split(' ')[0])))
    assert.deepEqual(turnsOf(tenant, taken), turnsOf(tenant, names));
}

/** Starts workflows while nobody works, then lets one worker take them one by one. */
async function workflowTurns(stage: Stage, guests: Errand[]): Promise<string[]> {
  const handles: WorkflowHandle[] = [];
  for (const { name, priority } of guests) {
    const workflowId = `${stage.name} ${name}`;
    handles.push(await stage.start(visitOnce, { workflowId, args: [name], priority }));
  }
  const { taken, activities } = turns();
  const finish = () => Promise.all(handles.map((handle) => handle.result()));
  await stage.withWorker(finish, { ...oneByOne, activities });
  return taken;
}

/** Lets workflows schedule activities that nobody runs yet, then one worker takes them one by one. */
async function activityTurns(
  stage: Stage,
  ...plans: { priority?: Priority; errands: Errand[] }[]
): Promise<string[]> {
  const taskQueue = `${stage.name}-errands`;
  const { taken, activities } = turns();
  await stage.withWorker(async () => {
    const handles: WorkflowHandle[] = [];
    for (const [number, { priority, errands }] of plans.entries()) {
      const workflowId = `${stage.name}-${number}`;
      handles.push(await stage.start(runErrands, { workflowId, args: [taskQueue, errands], priority }));
    }
    for (const handle of handles) await untilEvent(handle, 'ACTIVITY_TASK_SCHEDULED');
    const finish = () => Promise.all(handles.map((handle) => handle.result()));
    await stage.withWorker(finish, { ...oneByOne, taskQueue, activities });
  });
  return taken;
}

/**
 * Lets workflows start children that nobody works for yet, then one worker takes them one by one. Each child
 * is started by itself, so siblings of one tenant may wait in any order.
 */
async function childTurns(
  stage: Stage,
  ...plans: { priority?: Priority; errands: Errand[] }[]
): Promise<string[]> {
  const taskQueue = `${stage.name}-visitors`;
  const { taken, activities } = turns();
  await stage.withWorker(async () => {
    const handles: WorkflowHandle[] = [];
    for (const [number, { priority, errands }] of plans.entries()) {
      const workflowId = `${stage.name}-${number}`;
      handles.push(await stage.start(sendVisitors, { workflowId, args: [taskQueue, errands], priority }));
    }
    for (const [number, handle] of handles.entries())
      await until('all children wait', async () => {
        const names = await eventNames(handle);
        const waiting = names.filter((name) => name === 'CHILD_WORKFLOW_EXECUTION_STARTED');
        return waiting.length === plans[number].errands.length;
      });
    const finish = () => Promise.all(handles.map((handle) => handle.result()));
    await stage.withWorker(finish, { ...oneByOne, taskQueue, activities });
  });
  return taken;
}

scenario('urgent workflows go first and three is the default', async (stage) => {
  const taken = await workflowTurns(stage, [
    ...errands('batch', 2, { priorityKey: 5 }),
    ...errands('ordinary', 2),
    ...errands('three', 2, { priorityKey: 3 }),
    ...errands('urgent', 2, { priorityKey: 1 }),
  ]);
  const middle = ['ordinary 1', 'ordinary 2', 'three 1', 'three 2'];
  assert.deepEqual(taken, ['urgent 1', 'urgent 2', ...middle, 'batch 1', 'batch 2']);
});

scenario('workflows of three tiers share every ten turns by weight', async (stage) => {
  const taken = await workflowTurns(stage, tiers);
  assert.equal(taken.length, tiers.length);
  assertShares(taken, tierShares);
  assertFirstComeFirstServed(taken, tiers);
});

scenario('workflows without a key are one tenant among others', async (stage) => {
  const taken = await workflowTurns(stage, [
    ...errands('unkeyed', 6),
    ...errands('acme', 3, { fairnessKey: 'acme' }),
    ...errands('bolt', 3, { fairnessKey: 'bolt' }),
  ]);
  assertShares(taken.slice(0, 9), { unkeyed: 1, acme: 1, bolt: 1 });
  assert.deepEqual(taken.slice(9), ['unkeyed 4', 'unkeyed 5', 'unkeyed 6']);
});

scenario('activities go by level and share a level by weight', async (stage) => {
  const all = [
    ...errands('batch', 2, { priorityKey: 5, fairnessKey: 'premium-tier', fairnessWeight: 5 }),
    ...tiers,
    ...errands('urgent', 2, { priorityKey: 1, fairnessKey: 'free-tier', fairnessWeight: 2 }),
  ];
  const taken = await activityTurns(stage, { errands: all });
  assert.equal(taken.length, all.length);
  assertShares(taken.slice(0, 2), { urgent: 2 });
  assertShares(taken.slice(2, -2), tierShares);
  assertShares(taken.slice(-2), { batch: 2 });
});

scenario('activities take the place in the order of their workflows', async (stage) => {
  const taken = await activityTurns(
    stage,
    { priority: { priorityKey: 5 }, errands: errands('batch', 1) },
    { priority: { fairnessKey: 'acme', fairnessWeight: 3 }, errands: errands('acme', 9) },
    // A key of their own, and the weight of their workflow.
    { priority: { fairnessWeight: 2 }, errands: errands('bolt', 6, { fairnessKey: 'bolt' }) },
    { priority: { priorityKey: 1 }, errands: errands('urgent', 1) },
  );
  assert.equal(taken.length, 17);
  assert.equal(taken[0], 'urgent 1');
  assertShares(taken.slice(1, -1), { acme: 3, bolt: 2 });
  assert.equal(taken.at(-1), 'batch 1');
});

scenario('children go by level and share a level by weight', async (stage) => {
  const all = [
    ...errands('batch', 2, { priorityKey: 5, fairnessKey: 'premium-tier', fairnessWeight: 5 }),
    ...tiers,
    ...errands('urgent', 2, { priorityKey: 1, fairnessKey: 'free-tier', fairnessWeight: 2 }),
  ];
  const taken = await childTurns(stage, { errands: all });
  assert.equal(taken.length, all.length);
  assertShares(taken.slice(0, 2), { urgent: 2 });
  for (let first = 2; first < 32; first += 10) assertShares(taken.slice(first, first + 10), tierShares);
  assertShares(taken.slice(-2), { batch: 2 });
});

scenario('children take the place in the order of their parents', async (stage) => {
  const taken = await childTurns(
    stage,
    { priority: { priorityKey: 5 }, errands: errands('batch', 1) },
    { priority: { fairnessKey: 'acme', fairnessWeight: 3 }, errands: errands('acme', 9) },
    // A key of their own, and the weight of their parent.
    { priority: { fairnessWeight: 2 }, errands: errands('bolt', 6, { fairnessKey: 'bolt' }) },
    { priority: { priorityKey: 1 }, errands: errands('urgent', 1) },
  );
  assert.equal(taken.length, 17);
  assert.equal(taken[0], 'urgent 1');
  for (let first = 1; first < 16; first += 5) assertShares(taken.slice(first, first + 5), { acme: 3, bolt: 2 });
  assert.equal(taken.at(-1), 'batch 1');
});
