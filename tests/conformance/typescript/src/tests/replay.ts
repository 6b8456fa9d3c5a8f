// Histories that outlive the worker that made them: restarts, patches, replays, great length.
import assert from 'node:assert/strict';
import * as activities from '../app/activities';
import { hello, manyActivities } from '../app/activityWorkflows';
import { journey } from '../app/current';
import { inbox } from '../app/messageWorkflows';
import { close, count, deliver, goOn, ticket } from '../app/messages';
import { eventNames, replay, scenario, untilEvent } from './support';

scenario('a waiting workflow goes on under a new worker', async (stage) => {
  const handle = await stage.start(inbox);
  await stage.withWorker(async () => {
    await handle.signal(deliver, 'to the first worker');
    assert.equal(await handle.query(count), 1);
  });
  await stage.withWorker(async () => {
    await handle.signal(deliver, 'to the second worker');
    await handle.signal(close);
    assert.deepEqual(await handle.result(), ['to the first worker', 'to the second worker']);
  });
});

scenario('a run from before a patch keeps its old code path', async (stage) => {
  const handle = await stage.start(journey);
  const number = await stage.withWorker(() => handle.query(ticket), { deployment: 'previous' });
  const finish = async () => {
    await handle.signal(goOn);
    assert.equal(await handle.result(), `old road ${number}`);
  };
  await stage.withWorker(finish, { activities });
  assert.ok(!(await eventNames(handle)).includes('MARKER_RECORDED'));
});

scenario('a run from after a patch records a marker and takes the new path', async (stage) => {
  const run = async () => {
    const handle = await stage.start(journey);
    await untilEvent(handle, 'MARKER_RECORDED');
    await handle.signal(goOn);
    assert.equal(await handle.result(), 'new road Hello, traveller!');
  };
  await stage.withWorker(run, { activities });
});

scenario('a downloaded history replays without non-determinism', async (stage) => {
  const handle = await stage.start(hello, { args: ['Ada'] });
  await stage.withWorker(() => handle.result(), { activities });
  await replay(handle);
});

scenario('a history of a thousand events has dense ids and replays', async (stage) => {
  const handle = await stage.start(manyActivities, { args: [17, 20] });
  assert.equal(await stage.withWorker(() => handle.result(), { activities }), 340);
  const ids = ((await handle.fetchHistory()).events ?? []).map((event) => Number(event.eventId));
  assert.ok(ids.length >= 1000);
  assert.deepEqual(
    ids,
    [...ids.keys()].map((index) => index + 1),
  );
  await replay(handle);
});
