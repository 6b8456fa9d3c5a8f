// What the tests use to stage a workflow and to look at what became of it.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { Client, Connection, WorkflowHandle, WorkflowStartOptions } from '@temporalio/client';
import { Workflow } from '@temporalio/common';
import { temporal } from '@temporalio/proto';
import {
  DefaultLogger,
  makeTelemetryFilterString,
  NativeConnection,
  Runtime,
  Worker,
  WorkerOptions,
} from '@temporalio/worker';
import { bundlePath, Deployment } from '../bundle';

type Event = temporal.api.history.v1.IHistoryEvent;

const waitMs = 30_000;
const address = process.env.FAIRLEAD_ADDRESS;
const namespace = process.env.FAIRLEAD_NAMESPACE ?? 'default';

// Stdout belongs to the report; broken deployments and timeouts under test would fill it with warnings.
Runtime.install({
  logger: new DefaultLogger('ERROR', () => undefined),
  telemetryOptions: { logging: { filter: makeTelemetryFilterString({ core: 'ERROR', other: 'ERROR' }) } },
});

/** One test's connections, task queue and workflow id, so that no run of a test meets another run. */
export class Stage {
  readonly name = `conformance-typescript-${randomUUID()}`;

  constructor(
    readonly client: Client,
    private readonly connection: NativeConnection,
  ) {}

  /** Runs the body with a worker at its side. */
  async withWorker<T>(
    body: () => Promise<T>,
    { deployment = 'current', ...options }: Partial<WorkerOptions> & { deployment?: Deployment } = {},
  ): Promise<T> {
    const worker = await Worker.create({
      connection: this.connection,
      namespace,
      taskQueue: this.name,
      workflowBundle: { codePath: bundlePath(deployment) },
      maxHeartbeatThrottleInterval: 100,
      ...options,
    });
    return await worker.runUntil(body);
  }

  async start<T extends Workflow>(
    workflow: T,
    options: Partial<WorkflowStartOptions<T>> & { args?: Parameters<T> } = {},
    client = this.client,
  ) {
    const startOptions = { workflowId: this.name, taskQueue: this.name, ...options };
    return await client.workflow.start(workflow, startOptions as WorkflowStartOptions<T>);
  }

  /** Asks for the first task with the answer: the client has to share its connection with the worker. */
  async startEagerly<T extends Workflow>(
    workflow: T,
    options: Partial<WorkflowStartOptions<T>> & { args?: Parameters<T> } = {},
  ) {
    const client = new Client({ connection: this.connection, namespace });
    return await this.start(workflow, { requestEagerStart: true, ...options }, client);
  }
}

/** Declares a test that gets its own stage; its title is a sentence about behaviour. */
export function scenario(title: string, body: (stage: Stage) => Promise<void>): void {
  test(title, { timeout: 3 * waitMs }, async () => {
    const connection = await NativeConnection.connect({ address });
    const clientConnection = await Connection.connect({ address });
    try {
      await body(new Stage(new Client({ connection: clientConnection, namespace }), connection));
    } finally {
      await clientConnection.close();
      await connection.close();
    }
  });
}

export async function events(handle: WorkflowHandle): Promise<Event[]> {
  return (await handle.fetchHistory()).events ?? [];
}

export function nameOf(event: Event): string {
  const name = temporal.api.enums.v1.EventType[event.eventType ?? 0];
  return name.replace('EVENT_TYPE_', '');
}

export async function eventNames(handle: WorkflowHandle): Promise<string[]> {
  return (await events(handle)).map(nameOf);
}

/** Waits for a condition that only the server can tell, with a generous bound. */
export async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + waitMs;
  while (!(await isSo())) {
    assert.ok(Date.now() < deadline, `it never came so far that ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export async function untilEvent(handle: WorkflowHandle, name: string): Promise<void> {
  await until(`the history shows ${name}`, async () => (await eventNames(handle)).includes(name));
}

/** Rejects when today's code does not do what the history says. */
export async function replay(handle: WorkflowHandle): Promise<void> {
  const workflowBundle = { codePath: bundlePath('current') };
  await Worker.runReplayHistory({ workflowBundle }, await handle.fetchHistory(), handle.workflowId);
}

/** Returns the error that a promise is expected to end with. */
export async function failureOf<E extends Error>(
  promise: Promise<unknown>,
  type: abstract new (...args: never[]) => E,
): Promise<E> {
  try {
    await promise;
  } catch (error) {
    assert.ok(error instanceof type, `expected ${type.name}, got ${error}`);
    return error;
  }
  assert.fail(`expected ${type.name}, got a result`);
}

export function isA<E>(value: unknown, type: abstract new (...args: never[]) => E): asserts value is E {
  assert.ok(value instanceof type, `expected ${type.name}, got ${value}`);
}
