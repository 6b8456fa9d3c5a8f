// The signals, queries and updates of the workflows, shared with their callers.
import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';

export const deliver = defineSignal<[letter: string]>('deliver');
export const close = defineSignal('close');
export const wake = defineSignal('wake');
export const leave = defineSignal('leave');
export const goOn = defineSignal('goOn');
export const approve = defineSignal<[to: string]>('approve');
export const move = defineSignal('move');

export const count = defineQuery<number>('count');
export const letter = defineQuery<string, [index: number]>('letter');
export const ticket = defineQuery<string>('ticket');
export const entries = defineQuery<string[]>('entries');

export const deposit = defineUpdate<number, [amount: number]>('deposit');
export const withdraw = defineUpdate<number, [amount: number]>('withdraw');
export const transfer = defineUpdate<string, [to: string]>('transfer');
export const thank = defineUpdate<string[], [name: string]>('thank');
export const whoAsks = defineUpdate<string[]>('whoAsks');
export const closeAtOnce = defineUpdate<string>('closeAtOnce');
