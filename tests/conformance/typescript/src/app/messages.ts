// The signals and queries of the workflows, shared with their callers.
import { defineQuery, defineSignal } from '@temporalio/workflow';

export const deliver = defineSignal<[letter: string]>('deliver');
export const close = defineSignal('close');
export const wake = defineSignal('wake');
export const leave = defineSignal('leave');
export const goOn = defineSignal('goOn');

export const count = defineQuery<number>('count');
export const letter = defineQuery<string, [index: number]>('letter');
export const ticket = defineQuery<string>('ticket');
